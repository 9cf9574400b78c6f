import type { ports } from "@portico/core";
import type { ArgumentCheck, ArgumentChecks } from "./argument-checks.ts";
import { nameTools } from "./tool-names.ts";
import { isIdempotent } from "./tool-idempotence.ts";
import { needsConfirmation, riskOf } from "./tool-risk.ts";

/** A tool of a server, ready to be called. */
export interface McpTool {
  /** The server's name of the tool. */
  readonly name: string;
  readonly definition: ports.ToolDefinition;
  readonly check: ArgumentCheck;
}

/** The tools of a server, by tool ID. */
export interface ToolTable {
  readonly tools: ReadonlyMap<string, McpTool>;
  /** Number of tools that are left out because they cannot be called. */
  readonly leftOut: number;
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
 * name, and tools whose schema is not for an object.
 */
export function createToolTable(
  server: { readonly id: string; readonly trusted: boolean },
  listed: readonly unknown[],
  checks: ArgumentChecks,
): ToolTable {
  const usable = new Map<string, { tool: Listed; check: ArgumentCheck }>();
  for (const tool of listed) {
    const check = isNamed(tool) ? checks.compile(tool.inputSchema) : undefined;
    if (!check || !isNamed(tool)) continue;
    const id = `${server.id}/${tool.name}`;
    if (!usable.has(id)) usable.set(id, { tool, check });
  }
  checks.keep([...usable.values()].map(({ tool }) => tool.inputSchema));
  const names = nameTools(server.id, [...usable.keys()]);
  const tools = new Map(
    [...usable].map(([id, { tool, check }]): [string, McpTool] => {
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
      return [id, { name: tool.name, definition, check }];
    }),
  );
  return { tools, leftOut: listed.length - tools.size };
}

function isNamed(tool: unknown): tool is Listed {
  const name = typeof tool === "object" && tool !== null ? (tool as { name?: unknown }).name : undefined;
  return typeof name === "string" && /^\S{1,256}$/.test(name);
}

function firstText(...candidates: readonly unknown[]): string | undefined {
  return candidates.find((text): text is string => typeof text === "string" && /\S/.test(text))?.toWellFormed();
}
