import * as v from "valibot";

/** What several model calls used (`ports.ModelUsage`), as calls show it. Fields that are not known are absent. */
export const modelUsage = v.object({
  inputTokens: v.optional(v.number()),
  outputTokens: v.optional(v.number()),
  cost: v.optional(v.number()),
  currency: v.optional(v.string()),
});
