import { defineWorkflowNode, hasMoreLevels, jsonObject, parseJson, ports } from "@portico/core";
import * as v from "valibot";

const input = v.strictObject({
  tool: v.pipe(
    v.string(),
    v.description("Id of the tool, `server/tool` for a tool of an MCP server. The node is repeatable if the tool is idempotent."),
  ),
  arguments: v.optional(v.pipe(jsonObject, v.description("Arguments, by the tool's own schema; default: no arguments.")), {}),
});

type ToolInput = v.InferOutput<typeof input>;

const NO_TOOLS = "No tools are configured in this instance: nodes of type tool cannot run";
const LONGEST_TEXT = 1_000;

/**
 * Nodes that run a tool. If the result is a single JSON text, the output is that JSON; another single text gives `{ text }`; a
 * result with images gives `{ content }`, unchanged. Tools that need a person's consent are refused, because no person is asked
 * here. A call is repeatable if the tool was last listed as idempotent.
 */
export const toolNode = defineWorkflowNode({
  name: "workflow-nodes/tool",
  needs: { tools: ports.tools },
  rules: (_options: void, known): ports.NodeRules<ToolInput> => ({
    type: "tool",
    input,
    repeatable: ({ tool: id }) => known.tool(id)?.idempotent ?? false,
    check({ tool: id }) {
      if (known.toolSources === 0) return [{ path: [], message: NO_TOOLS }];
      const isComplete = known.knowsAllTools();
      if (typeof id !== "string" || id.includes("${{")) return [];
      const definition = known.tool(id);
      if (definition?.requiresConfirmation) return [{ path: ["tool"], message: needsConfirmation(id) }];
      return definition || !isComplete ? [] : [{ path: ["tool"], message: unknownTool(id) }];
    },
  }),
  open({ tools }) {
    /** The last known lists: definitions are checked without waiting. */
    const known = new Map<ports.ToolSource, readonly ports.ToolDefinition[]>();
    const list = async (
      source: ports.ToolSource,
      signal?: AbortSignal,
      caller?: Pick<ports.ToolCaller, "userId">,
    ): Promise<readonly ports.ToolDefinition[]> => {
      const definitions = await source.list(signal, caller);
      known.set(source, definitions);
      return definitions;
    };
    // In the background: a source may be slow or unreachable.
    const refresh = (): void => {
      for (const source of tools) void list(source).catch(() => undefined);
    };
    refresh();
    const lastListed = (id: string): ports.ToolDefinition | undefined =>
      [...known.values()].flat().find((each) => each.id === id);

    /** Throws ToolsUnavailable if the tool was not found and a source could not be asked. */
    const find = async (id: string, caller: Pick<ports.ToolCaller, "userId">, signal: AbortSignal) => {
      let unavailable: unknown;
      for (const source of tools) {
        try {
          const definition = (await list(source, signal, caller)).find((each) => each.id === id);
          if (definition) return { source, definition };
        } catch (error) {
          signal.throwIfAborted();
          unavailable ??= error;
        }
      }
      if (unavailable !== undefined) throw unavailable;
      return undefined;
    };

    return {
      known: {
        toolSources: tools.length,
        tool: lastListed,
        knowsAllTools() {
          // Tools change over time: the next call gets a newer list.
          refresh();
          return known.size === tools.length;
        },
      },
      async run({ input: { tool: id, arguments: args }, step, signal }: ports.NodeWork<ToolInput>) {
        signal.throwIfAborted();
        try {
          const found = await find(id, { userId: step.userId }, signal);
          if (!found) throw failed("tool_not_found", tools.length === 0 ? NO_TOOLS : unknownTool(id));
          if (found.definition.requiresConfirmation) throw failed("tool_needs_confirmation", needsConfirmation(id));
          const caller = { userId: step.userId, runId: step.runId, workflowDepth: step.workflowDepth };
          const result = await found.source.call({ toolId: id, arguments: args, caller }, signal);
          return toOutput(result, id);
        } catch (error) {
          signal.throwIfAborted();
          throw toFailure(error, id);
        }
      },
    };
  },
});

function toOutput({ content, isError }: ports.ToolResult, id: string): unknown {
  const texts = content.flatMap((part) => (part.type === "text" ? part.text : []));
  const text = texts.join("\n");
  if (isError) {
    const words = text.slice(0, LONGEST_TEXT);
    throw new ports.NodeFailed("tool_failed", words || `The tool "${id}" failed`);
  }
  const output = texts.length < content.length ? { content } : texts.length === 1 ? jsonOr({ text }) : { text };
  if (hasMoreLevels(output, ports.NODE_OUTPUT_LEVELS)) {
    throw failed("tool_too_deep", `The tool "${id}" gave JSON of more than ${ports.NODE_OUTPUT_LEVELS} levels`);
  }
  if (Buffer.byteLength(JSON.stringify(output)) <= ports.NODE_OUTPUT_BYTES) return output;
  throw failed("tool_too_large", `The tool "${id}" gave more than ${ports.NODE_OUTPUT_BYTES / 1024 / 1024} MiB`);
}

/** Parses a text as JSON. If it is not JSON, returns the text unchanged. */
function jsonOr(given: { readonly text: string }): unknown {
  try {
    return parseJson(given.text);
  } catch {
    return given;
  }
}

function toFailure(error: unknown, id: string): unknown {
  if (error instanceof ports.ToolNotFound) return failed("tool_not_found", unknownTool(id), error);
  if (error instanceof ports.ToolArgumentsInvalid) return failed("tool_arguments_invalid", error.message, error);
  // A repetition cannot help until a person has connected the account.
  if (error instanceof ports.ToolsNotConnected) return failed(error.code, error.message, error);
  if (error instanceof ports.ToolsUnavailable) return new ports.NodeFailed("tools_unavailable", error.message, { cause: error });
  return error;
}

function unknownTool(id: string): string {
  return `There is no tool "${id}" in this instance`;
}

function needsConfirmation(id: string): string {
  return `The tool "${id}" needs a person's consent, which a workflow node cannot request`;
}

function failed(code: string, message: string, cause?: unknown): ports.NodeFailed {
  return new ports.NodeFailed(code, message, { retryable: false, cause });
}
