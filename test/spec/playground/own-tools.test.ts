import { memoryRecords } from "@portico/adapters/records/memory";
import { defineAdapter, ports } from "@portico/core";
import { describe, expect, it } from "vitest";
import { memoryTools, start } from "../../../playground/own-tools.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";

describe("a tool source of one's own", () => {
  const ask = (source: ports.ToolSource, userId: string, toolId: string, args: object) =>
    source.call({ toolId, arguments: args, caller: { userId } }, new AbortController().signal);

  it("is given to an app, with the port that it is built on opened before it", async () => {
    await using app = await start();
    const [source] = app.port(ports.tools);
    await ask(source!, "ada", "remember", { topic: "tea", text: "No milk." });
    const text = async (userId: string) => (await ask(source!, userId, "recall", { topic: "tea" })).content;
    expect(await text("ada")).toEqual([{ type: "text", text: "No milk." }]);
    expect(await text("bob")).toEqual([{ type: "text", text: 'Nothing is kept under "tea".' }]);
  });

  it("speaks of a store that is not there in the words of its own port", async () => {
    const undo: (() => unknown)[] = [];
    const store = defineAdapter({
      name: "records/closed-by-the-test",
      port: ports.records,
      needs: {},
      open: () => memoryRecords().spec.open({}, undefined, { onClose: (step) => void undo.push(step), onReady: () => {} }),
    });
    const { port: source } = await openAdapter(memoryTools({}), [store()]);
    for (const step of undo) await step();
    await expect(ask(source, "ada", "recall", { topic: "tea" })).rejects.toBeInstanceOf(ports.ToolsUnavailable);
  });
});
