import { systemClock } from "@portico/adapters/clock/system";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpTools } from "@portico/adapters/tools/mcp";
import { ports, Secret } from "@portico/core";
import { afterEach, describe, expect, it } from "vitest";
import { referenceMcpServer } from "../harness/oracle.ts";
import { openAdapter } from "./open-adapter.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function open(env: Readonly<Record<string, string | Secret>>): Promise<ports.ToolSource> {
  const server = { command: process.execPath, args: [referenceMcpServer("everything")], env };
  const opened = await openAdapter(mcpTools({ id: "shop", ...server }), [
    systemClock(),
    memoryTelemetry({ telemetry: createMemoryTelemetry() }),
  ]);
  undo.push(() => opened.close());
  return opened.port;
}

function run(source: ports.ToolSource, toolId: string, args: unknown = {}): Promise<ports.ToolResult> {
  return source.call({ toolId, arguments: args, caller: {} }, new AbortController().signal);
}

async function said(result: Promise<ports.ToolResult>): Promise<string> {
  const [part] = (await result).content;
  return part?.type === "text" ? part.text : "";
}

describe("the official example server", () => {
  it("is listed and called, with text, image, resources and its own errors", async () => {
    const source = await open({ OWN: new Secret("for-the-program") });
    const tools = await source.list();
    expect(tools.map(({ id }) => id)).toEqual(expect.arrayContaining(["shop/echo", "shop/get-sum", "shop/get-tiny-image"]));
    expect(tools.find(({ id }) => id === "shop/get-sum")).toMatchObject({ name: "shop_get-sum", riskLevel: "medium" });
    expect(await said(run(source, "shop/echo", { message: "one" }))).toContain("one");
    const { content } = await run(source, "shop/get-tiny-image");
    expect(content).toContainEqual({ type: "image", mimeType: "image/png", data: expect.stringMatching(/^iVBOR/) });
    expect(JSON.stringify(await run(source, "shop/get-resource-reference"))).toContain("demo://resource");
    expect(JSON.stringify(await run(source, "shop/get-resource-links", { count: 2 }))).toContain("demo://resource");
    await expect(run(source, "shop/get-sum", { a: "1" })).rejects.toThrow(ports.ToolArgumentsInvalid);
  });

  it("gets the environment that it was given, and nothing of ours that may be secret", async () => {
    process.env["PORTICO_HIDDEN"] = "hidden-word";
    undo.push(() => delete process.env["PORTICO_HIDDEN"]);
    const source = await open({ OWN: new Secret("for-the-program"), OPEN: "too" });
    const env = await said(run(source, "shop/get-env"));
    expect(JSON.parse(env)).toMatchObject({ OWN: "for-the-program", OPEN: "too", PATH: process.env["PATH"] });
    expect(env).not.toContain("hidden-word");
  });
});
