import type { CredentialPrefix } from "../kit/credential-prefixes.ts";
import { definePort, type Port } from "../grammar/port.ts";
import type { Secret } from "../config/secret.ts";

/** Creates, stores and compares secrets. No other code in an app handles their bytes. */
export interface Secrets {
  /** A new secret: `prefix` and 256 random bits in base64url (43 characters). */
  create(prefix: CredentialPrefix | ""): Secret;
  /** SHA-256 of the value, lowercase hex. It is stored in place of the value. Accepts any text, also untrusted input. */
  digest(value: string): string;
  /**
   * Whether `presented` is the secret with this stored digest. The time does not depend on where they differ. False for an
   * invalid `digest`.
   */
  matches(presented: string, digest: string): boolean;
  /**
   * The instance's own secret with this name: the stored one, or else the result of `make()`, which is durable before this
   * resolves. If several callers ask at the same time, also in several processes that share the storage, the secret of one is
   * stored, and all get it. A name is 1-128 letters, digits and `.`, `_`, `:`, `/`, `-`. Throws the errors of `make`, and
   * TypeError for an invalid name or an empty secret.
   */
  keep(name: string, make: () => Secret): Promise<KeptSecret>;
  /** The stored secret, or undefined. Creates nothing. Throws like `keep`. */
  find(name: string): Promise<Secret | undefined>;
  /**
   * Store this value under the name, with or without an old value. The old value is gone when this resolves. Throws like `keep`.
   */
  replace(name: string, value: Secret): Promise<void>;
}

/** The answer of `keep`. */
export interface KeptSecret {
  readonly value: Secret;
  /** True if this call made the secret, so that it can be shown once. */
  readonly created: boolean;
}

/** Thrown by `keep`, `find` and `replace` when the storage of secrets cannot be read or written. Its message holds no secret. */
export class SecretsUnavailable extends Error {
  override readonly name = "SecretsUnavailable";
}

/** The port of secrets. */
export const secrets: Port<Secrets> = definePort<Secrets>("secrets");
