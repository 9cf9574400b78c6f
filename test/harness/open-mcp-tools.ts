import { systemClock } from "@portico/adapters/clock/system";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpTools, type McpToolsOptions } from "@portico/adapters/tools/mcp";
import type { Adapter, ports } from "@portico/core";
import { afterEach } from "vitest";
import { openAdapter } from "../conformance/open-adapter.ts";

/** The tools of one MCP server, with the id `shop`. */
export interface OpenMcpTools {
  readonly source: ports.ToolSource;
  readonly telemetry: MemoryTelemetry;
  close(): Promise<void>;
}

/** Opens the tools of MCP servers for the tests of a file. After each test they are closed, and the steps of `undo` are made, the last first. */
export function useMcpTools() {
  const undo: (() => unknown)[] = [];
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });
  return {
    undo,
    async open(options: Omit<McpToolsOptions, "id">, clock: Adapter = systemClock()): Promise<OpenMcpTools> {
      const telemetry = createMemoryTelemetry();
      const opened = await openAdapter(mcpTools({ id: "shop", ...options }), [clock, memoryTelemetry({ telemetry })]);
      undo.push(() => opened.close());
      return { source: opened.port, telemetry, close: opened.close };
    },
  };
}

/** Calls one tool, for no user. */
export function run(source: ports.ToolSource, toolId: string, args: unknown = {}, signal = new AbortController().signal) {
  return source.call({ toolId, arguments: args, caller: {} }, signal);
}
