import type { ports } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import { nameTools } from "./tool-names.ts";
import { isIdempotent } from "./tool-idempotence.ts";
import { needsConfirmation, riskOf } from "./tool-risk.ts";

/** A tool of a server, ready to be called. */
export interface McpTool {
  /** The server's name of the tool. */
  readonly name: string;
  readonly definition: ports.ToolDefinition;
}

/** The tools of a server, by tool ID. */
export interface ToolTable {
  readonly tools: ReadonlyMap<string, McpTool>;
  /** What is wrong with single tools. */
  readonly problems: readonly ports.ToolProblem[];
}

interface Listed {
  readonly name: string;
  readonly title?: unknown;
  readonly description?: unknown;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly annotations?: unknown;
}

/**
 * Convert a server's list to definitions. Left out are tools whose name does not fit into an ID, the second tool with the same
 * name, and tools whose schema cannot be used or is not for an object. The list has problems for them.
 */
export async function createToolTable(
  server: { readonly id: string; readonly trusted: boolean },
  listed: readonly unknown[],
  checks: SchemaChecks,
): Promise<ToolTable> {
  const usable = new Map<string, Listed>();
  const problems: ports.ToolProblem[] = [];
  for (const [index, tool] of listed.entries()) {
    if (!isNamed(tool)) {
      problems.push({ kind: "left_out", message: `Tool ${index + 1} of the server's list has no usable name` });
      continue;
    }
    const toolId = `${server.id}/${tool.name}`;
    const tell = (kind: ports.ToolProblem["kind"], message: string) => problems.push({ toolId, kind, message });
    const { inputSchema: schema } = tool;
    if (usable.has(toolId)) tell("left_out", "Another tool of the server has the same name");
    else if (!isObjectSchema(schema)) tell("left_out", "The schema of its arguments is not of type object");
    else {
      const found = await checks.inspect(schema, { isForeign: true });
      if ("unusable" in found) tell("left_out", `The schema of its arguments cannot be used: ${found.unusable}`);
      else usable.set(toolId, tool);
      if ("unchecked" in found && found.unchecked.length > 0) tell("unchecked", UNCHECKED);
      // Other requests are answered between two schemas.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const names = nameTools(server.id, [...usable.keys()]);
  const tools = new Map(
    [...usable].map(([id, tool]): [string, McpTool] => {
      const riskLevel = riskOf(tool.annotations, server.trusted);
      const definition: ports.ToolDefinition = {
        id,
        name: names.get(id)!,
        description: firstText(tool.description, tool.title) ?? tool.name,
        inputSchema: tool.inputSchema,
        riskLevel,
        requiresConfirmation: needsConfirmation(riskLevel),
        idempotent: isIdempotent(tool.annotations),
      };
      return [id, { name: tool.name, definition }];
    }),
  );
  return { tools, problems };
}

const UNCHECKED = "The server alone checks some patterns of its arguments: RE2 lacks what they use, or they are too long";

function isObjectSchema(schema: unknown): schema is Readonly<Record<string, unknown>> {
  return (
    typeof schema === "object" && schema !== null && !Array.isArray(schema) && (schema as { type?: unknown }).type === "object"
  );
}

function isNamed(tool: unknown): tool is Listed {
  const name = typeof tool === "object" && tool !== null ? (tool as { name?: unknown }).name : undefined;
  return typeof name === "string" && /^\S{1,256}$/.test(name);
}

function firstText(...candidates: readonly unknown[]): string | undefined {
  return candidates.find((text): text is string => typeof text === "string" && /\S/.test(text))?.toWellFormed();
}
