import { defineAdapter, ports } from "@portico/core";

/** A tool that is a function of this process. */
export interface FunctionTool extends Omit<ports.ToolDefinition, "id"> {
  /** Default: the name. */
  readonly id?: string;
  /** Checks its own arguments: throws `ToolArgumentsInvalid` for those that break the schema. Any other error becomes an error result. */
  run(args: unknown, caller: ports.ToolCaller, signal: AbortSignal): Promise<string | ports.ToolResult>;
}

export interface FunctionToolsOptions {
  /** Names the source; default `functions`. */
  readonly id?: string;
  readonly tools: readonly FunctionTool[];
}

/** Tools that an application brings along as plain functions. Two of one id are refused at the start. */
export const functionTools = defineAdapter({
  name: "tools/functions",
  port: ports.tools,
  needs: {},
  open(_given, options: FunctionToolsOptions): ports.ToolSource {
    const tools = new Map<string, FunctionTool>();
    for (const tool of options.tools) {
      const id = tool.id ?? tool.name;
      if (tools.has(id)) throw new Error(`Two tools have the id "${id}"`);
      tools.set(id, tool);
    }
    const definitions = [...tools].map(([id, { run: _run, ...definition }]) => ({ ...definition, id }));
    return {
      id: options.id ?? "functions",
      list: async () => definitions,
      async call({ toolId, arguments: args, caller }, signal) {
        signal.throwIfAborted();
        const tool = tools.get(toolId);
        if (!tool) throw new ports.ToolNotFound(`There is no tool "${toolId}" here`);
        try {
          const result = await tool.run(args, caller, signal);
          return typeof result === "string" ? { content: [{ type: "text", text: result }], isError: false } : result;
        } catch (error) {
          if (signal.aborted || error instanceof ports.ToolArgumentsInvalid) throw error;
          // The model reads that it failed, and nothing of an error that was meant for somebody else.
          return { content: [{ type: "text", text: `The tool "${tool.name}" failed` }], isError: true };
        }
      },
    };
  },
});
