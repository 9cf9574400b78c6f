import { functionTools } from "@portico/adapters/tools/functions";
import type { ports } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEvents } from "../../harness/answer-events.ts";
import { type LoopedAgents, startLoopedAgents, toolOf } from "../../harness/looped-agents.ts";
import { events } from "../../harness/upstream-answers.ts";

/** What began and ended, in order. */
const happened: string[] = [];
const watchers = new Set<() => void>();
const gates = new Map<string, PromiseWithResolvers<void>>();

const note = (what: string) => {
  happened.push(what);
  for (const look of watchers) look();
};
const has = (what: string) =>
  new Promise<void>((resolve) => {
    const look = () => {
      if (!happened.includes(what)) return;
      watchers.delete(look);
      resolve();
    };
    watchers.add(look);
    look();
  });
/** A tool that ends when the test lets it. */
const held = (name: string, more: Partial<ports.ToolDefinition> = {}) => ({
  ...toolOf(name, more),
  run: async (args: unknown) => {
    const what = `${name} ${(args as { of: string }).of}`;
    note(what);
    await gateOf(what).promise;
    note(`${what} done`);
    return "done";
  },
});
const gateOf = (what: string) => {
  const gate = gates.get(what) ?? Promise.withResolvers<void>();
  gates.set(what, gate);
  return gate;
};
const end = (what: string) => gateOf(what).resolve();

const files = functionTools({
  id: "files",
  tools: [held("write"), held("move"), held("read", { idempotent: true }), held("log", { concurrent: true })],
});
const mails = functionTools({ id: "mails", tools: [held("send")] });

let looped: LoopedAgents;
beforeAll(async () => {
  const toolIds = ["write", "move", "read", "log", "send"];
  looped = await startLoopedAgents(
    {
      looper: { provider: "messages", model: "echo-large", tools: toolIds },
      other: { engine: "scripted", tools: toolIds },
    },
    { adapters: [files, mails] },
  );
});
afterAll(() => looped[Symbol.asyncDispose]());
beforeEach(() => {
  looped.upstream.reset();
  happened.length = 0;
  gates.clear();
});

describe("the tool calls of one answer", () => {
  it("run one after another per source unless they are read-only or idempotent; those run in parallel", async () => {
    const call = (name: string, of: string) => ({ id: `call_${name}_${of}`, name, input: { of } });
    const calls = [
      ...[call("write", "1"), call("read", "2"), call("move", "3"), call("log", "4")],
      ...[call("write", "5"), call("send", "6"), call("read", "7")],
    ];
    looped.upstream.answerNext(events(answerEvents("messages", { calls })));
    const { client } = looped;
    const { clientRequestId } = await client.start("go", {}, { agentId: "looper" });
    await Promise.all(["write 1", "read 2", "log 4", "send 6", "read 7"].map(has));
    for (const what of ["read 2", "log 4", "send 6", "read 7"]) end(what);
    await Promise.all(["read 2 done", "log 4 done", "send 6 done", "read 7 done"].map(has));
    expect(happened.filter((what) => /^(?:move|write)/.test(what))).toEqual(["write 1"]);
    end("write 1");
    await has("move 3");
    end("move 3");
    await has("write 5");
    end("write 5");
    const { data } = await client.ended(clientRequestId);
    expect(happened.filter((what) => /^(?:move|write)/.test(what))).toEqual([
      ...["write 1", "write 1 done", "move 3", "move 3 done"],
      ...["write 5", "write 5 done"],
    ]);
    const said = client.of(clientRequestId).flatMap(({ data: { message } }) => (message?.content?.callId ? [message] : []));
    const at = (type: string, callId: string) =>
      said.findIndex((message) => message.type === type && message.content.callId === callId);
    // What was not begun when a turn breaks off is not told as begun.
    expect(at("tool_call", "call_move_3")).toBeGreaterThan(at("tool_result", "call_write_1"));
    const { body } = await looped.service.call("owner", "GET", `/api/runs/${data.runId}/receipt`);
    expect(body.receipts[0].tool_calls.map(({ id }: { id: string }) => id)).toEqual(calls.map(({ id }) => id));
  });

  it("of an engine that calls everything at once are held to it, too", async () => {
    looped.service.engine.on("all", async (_turn, { callTool, signal }) => {
      const call = (toolId: string, of: string) => callTool({ toolId, arguments: { of } }, signal);
      await Promise.all([call("write", "1"), call("move", "2"), call("read", "3")]);
    });
    const { client } = looped;
    const { clientRequestId } = await client.start("all", {}, { agentId: "other" });
    await Promise.all(["write 1", "read 3"].map(has));
    end("read 3");
    await has("read 3 done");
    expect(happened).not.toContain("move 2");
    end("write 1");
    await has("move 2");
    end("move 2");
    await client.ended(clientRequestId);
  });

  it("that wait for another's end never run where the turn is stopped", async () => {
    looped.service.engine.on("stopped", async (_turn, { callTool, signal }) => {
      const call = (toolId: string, of: string) => callTool({ toolId, arguments: { of } }, signal);
      await Promise.all([call("write", "1"), call("move", "2")]);
    });
    const { client } = looped;
    const { clientRequestId } = await client.start("stopped", {}, { agentId: "other" });
    await has("write 1");
    const { sessionId } = await client.event("query:started", clientRequestId);
    client.socket.emit("query:abort", { sessionId });
    expect((await client.ended(clientRequestId)).data.terminal.status).toBe("interrupted");
    end("write 1");
    await has("write 1 done");
    expect(happened).toEqual(["write 1", "write 1 done"]);
  });
});
