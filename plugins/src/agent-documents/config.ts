import * as v from "valibot";

/** Options of agent documents. */
export const agentDocumentsConfig = v.strictObject({
  /** Whether the texts can be saved and removed. Default: true. */
  editable: v.optional(v.boolean(), true),
});
