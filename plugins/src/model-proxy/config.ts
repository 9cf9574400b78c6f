import type { ports, Secret } from "@portico/core";
import * as v from "valibot";

/** Reads the tokens of an instance that are not safe tokens. */
export type ReadOwnTokens = (secrets: ports.Secrets) => Promise<readonly Secret[]>;

/** Options of the model proxy. */
export const modelProxyConfig = v.strictObject({
  /** Folder for the parts of large uploads that do not stay in memory; default: the system's temporary folder. */
  spoolDir: v.optional(v.string()),
  /**
   * Reads this instance's other tokens, once, at the start. A header or query parameter of a caller that contains one of them is not sent
   * to a provider. Default: no other tokens.
   */
  ownTokens: v.optional(v.custom<ReadOwnTokens>((value) => typeof value === "function", "a function that reads tokens")),
  /**
   * Ids of providers that are Portico instances themselves. Calls to them carry a trail of the instances that they passed, so that one that
   * comes back is refused. Default: none.
   */
  instances: v.optional(v.array(v.string()), []),
});
