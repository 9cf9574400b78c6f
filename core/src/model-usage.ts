import { maxCharacters } from "./characters.ts";
import * as v from "valibot";

/** What several model calls used (`ports.ModelUsage`), as calls show it. Fields that are not known are absent. */
export const modelUsage = v.object({
  inputTokens: v.optional(v.number()),
  outputTokens: v.optional(v.number()),
  cost: v.optional(v.number()),
  currency: v.optional(v.string()),
});

/** The areas that call models. */
export const modelCallers = v.picklist(["agent", "workflow", "proxy"]);

const value = v.optional(v.pipe(v.string(), maxCharacters(256)));

/** Parts of a query that choose calls of models: a value that they must have. */
export const callFilters = {
  source: v.optional(modelCallers),
  provider: value,
  model: value,
  userId: value,
  agentId: value,
  workflowId: value,
  tokenId: value,
} as const;
