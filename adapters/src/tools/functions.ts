import { defineAdapter, orAborted, ports } from "@portico/core";

/** A tool that is a function of this process. */
export interface FunctionTool extends Omit<ports.ToolDefinition, "id" | "idempotent"> {
  /** Default: the name. */
  readonly id?: string;
  /** Whether a second call with the same arguments has no further effect. Default: false. */
  readonly idempotent?: boolean;
  /**
   * Checks its own arguments: throws ToolArgumentsInvalid if they violate the schema. May also throw ToolsUnavailable. Any other
   * error becomes an error result. When the signal aborts, the result is no longer awaited.
   */
  run(args: unknown, caller: ports.ToolCaller, signal: AbortSignal): Promise<string | ports.ToolResult>;
}

/** Options of `functionTools`. */
export interface FunctionToolsOptions {
  /** Names the source; default `functions`. */
  readonly id?: string;
  readonly tools: readonly FunctionTool[];
}

/** Tool names that both protocols accept. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Tools of an application as plain functions. Opening throws for duplicate IDs or names, and for an invalid name. */
export const functionTools = defineAdapter({
  name: "tools/functions",
  port: ports.tools,
  needs: {},
  open(_given, options: FunctionToolsOptions): ports.ToolSource {
    const tools = new Map<string, FunctionTool>();
    const names = new Set<string>();
    for (const tool of options.tools) {
      const id = tool.id ?? tool.name;
      if (!TOOL_NAME.test(tool.name)) throw new Error(`Tool "${id}" needs a name of 1-64 letters, digits, "_" and "-"`);
      if (tools.has(id)) throw new Error(`Two tools have the id "${id}"`);
      if (names.has(tool.name)) throw new Error(`Two tools have the name "${tool.name}"`);
      tools.set(id, tool);
      names.add(tool.name);
    }
    const definitions = [...tools].map(([id, { run: _run, idempotent = false, ...definition }]) => ({
      ...definition,
      id,
      idempotent,
    }));
    return {
      id: options.id ?? "functions",
      list: async () => definitions,
      async call({ toolId, arguments: args, caller }, signal) {
        signal.throwIfAborted();
        const tool = tools.get(toolId);
        if (!tool) throw new ports.ToolNotFound(`There is no tool "${toolId}" here`);
        try {
          // A tool that ignores its signal must not block a stopped turn.
          const running = (async () => tool.run(args, caller, signal))();
          const result = await orAborted(running, signal);
          return typeof result === "string" ? { content: [{ type: "text", text: result }], isError: false } : result;
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof ports.ToolArgumentsInvalid || error instanceof ports.ToolsUnavailable) throw error;
          // The model learns that the tool failed, but not the error's message, which has another audience.
          return { content: [{ type: "text", text: `The tool "${tool.name}" failed` }], isError: true };
        }
      },
    };
  },
});
