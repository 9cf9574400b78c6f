import { fromEnv, type Live, type ports, type Secret } from "@portico/core";
import * as v from "valibot";

/** Reads the tokens of an instance that are not safe tokens. */
export type ReadOwnTokens = (secrets: ports.Secrets) => Promise<readonly Secret[]>;

/** Options of the management of safe tokens that presets have as settings of the instance. */
export const safeTokenSettings = {
  // The tool is `ComputeCredential` with `raw: true` (open points 2).
  allowRawCredentials: v.optional(
    fromEnv(
      "PORTICO_ALLOW_RAW_CREDENTIALS",
      v.boolean(),
      "Whether an agent's tool may receive a provider's real key, after confirmation.",
    ),
    false,
  ),
};

/** Options of the model proxy. */
export const modelProxyConfig = v.strictObject({
  /** Folder for parts of large uploads that do not fit into memory; default: the system's temporary folder. */
  spoolDir: v.optional(v.string()),
  /**
   * Reads the other tokens of this instance at the start. Callers' headers and query parameters that contain such a token are not
   * sent to a provider. Default: no other tokens.
   */
  ownTokens: v.optional(v.custom<ReadOwnTokens>((value) => typeof value === "function", "a function that reads tokens")),
  /** Reads them again, while the app is open. Default: they never change. */
  ownTokenRotation: v.optional(v.custom<Live<ReadOwnTokens>>((value) => typeof value === "object" && value !== null)),
  /**
   * Ids of providers that are also Portico instances. Calls to them have a header that lists the instances they passed, so that an instance
   * can refuse a call that comes back. Default: no ids.
   */
  instances: v.optional(v.array(v.string()), []),
});
