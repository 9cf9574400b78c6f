import * as v from "valibot";

/** Options of the model proxy. */
export const modelProxyConfig = v.strictObject({
  /** Folder for the parts of large uploads that do not stay in memory; default: the system's temporary folder. */
  spoolDir: v.optional(v.string()),
});
