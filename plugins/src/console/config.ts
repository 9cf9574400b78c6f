import * as v from "valibot";

/** Options of the web console. */
export const webConsoleConfig = v.strictObject({
  /**
   * Where each surface is reached, by its name: the page may call these beside its own origin. The function is called for each request. Default: the
   * page calls its own origin alone.
   */
  urls: v.optional(v.custom<() => Readonly<Record<string, string>>>((value) => typeof value === "function", "a function")),
  /** A folder with a built console; default: the one that this package ships. */
  built: v.optional(v.instance(URL)),
});

/** Options of the web console, as they are given. */
export type WebConsoleOptions = v.InferInput<typeof webConsoleConfig>;
