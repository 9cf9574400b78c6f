import * as v from "valibot";

/** Options of the web console. */
export const webConsoleConfig = v.strictObject({
  /**
   * The URL of each surface, by name. The page may call these URLs in addition to its own origin. The function is called for each request.
   * Default: the page can call only its own origin.
   */
  urls: v.optional(v.custom<() => Readonly<Record<string, string>>>((value) => typeof value === "function", "a function")),
  /** A folder with a built console; default: the one that this package ships. */
  built: v.optional(v.instance(URL)),
});

/** Options of the web console, as callers write them. */
export type WebConsoleOptions = v.InferInput<typeof webConsoleConfig>;
