import type { ports } from "@portico/core";
import * as v from "valibot";

/** An agent without its git state. */
export type AgentText = Pick<ports.Agent, "definition" | "metadataError">;

const text = v.pipe(v.string(), v.nonEmpty());

/** The fields that are read. Other fields of the file are allowed, because people and other programs store more in it. */
const fields = {
  name: v.pipe(v.string(), v.trim(), v.nonEmpty()),
  description: v.optional(v.string()),
  engine: v.optional(text),
  provider: v.optional(text),
  model: v.optional(text),
  instructions: v.optional(v.string()),
  onMaxTokens: v.optional(v.picklist(["stop", "continue"])),
  context: v.optional(
    v.strictObject({
      tokens: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1000))),
      summarize: v.optional(v.boolean()),
      promptCache: v.optional(v.boolean()),
    }),
  ),
  tools: v.optional(v.array(text)),
  skills: v.optional(v.array(text)),
  heartbeat: v.optional(
    v.object({ enabled: v.boolean(), everyMs: v.pipe(v.number(), v.safeInteger(), v.minValue(1)), prompt: v.string() }),
  ),
  core: v.optional(v.boolean()),
} satisfies Record<string, v.GenericSchema>;

/** An agent whose file cannot be read. */
export function unreadAgent(id: string, metadataError: NonNullable<AgentText["metadataError"]>): AgentText {
  return { definition: { name: id, engine: "loop", tools: [], skills: [], core: false }, metadataError };
}

/** Parses an `agent.json`. An invalid field counts as absent, and `metadataError` says so. The other fields are still used. */
export function readAgentText(id: string, json: string): AgentText {
  let given: unknown;
  try {
    given = JSON.parse(json);
  } catch {
    return unreadAgent(id, "invalid_json");
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) return unreadAgent(id, "invalid_shape");
  const found: Record<string, unknown> = {};
  let isWhole = true;
  for (const [field, schema] of Object.entries(fields)) {
    const parsed = v.safeParse(schema, (given as Record<string, unknown>)[field]);
    if (!parsed.success) isWhole = false;
    else if (parsed.output !== undefined) found[field] = parsed.output;
  }
  const { ui, avatar, webhooks } = given as Record<string, unknown>;
  const known = found as { readonly [K in keyof typeof fields]?: v.InferOutput<(typeof fields)[K]> };
  const definition: ports.AgentDefinition = {
    ...known,
    name: known.name ?? id,
    engine: known.engine ?? "loop",
    tools: known.tools ?? [],
    skills: known.skills ?? [],
    core: known.core ?? false,
    ...(ui !== undefined && { ui }),
    ...(avatar !== undefined && { avatar }),
    ...(webhooks !== undefined && { webhooks }),
  };
  return isWhole ? { definition } : { definition, metadataError: "invalid_shape" };
}
