import { definePort, type Port } from "../port.ts";
import type { Secret } from "../secret.ts";

/** Making, keeping and comparing secrets. Nothing else in an app touches their bytes. */
export interface Secrets {
  /** A new secret: `prefix` and 256 random bits in base64url (43 characters). */
  create(prefix: string): Secret;
  /** SHA-256 of the value, lowercase hex: what is stored in place of the value. Accepts any string, also what a stranger sent. */
  digest(value: string): string;
  /**
   * Whether `presented` is the secret whose digest is kept; the time taken does not depend on where they differ. False when
   * `digest` is none.
   */
  matches(presented: string, digest: string): boolean;
  /**
   * The instance's own secret of that name: the kept one, or else `make()`, which is durable before this resolves. Of several
   * that ask at the same time, in several processes too where they share a place, one makes it and all get it. A name is 1-128 of
   * letters, digits and `.`, `_`, `:`, `/`, `-`. Throws what `make` throws, and TypeError for another name or an empty secret.
   */
  keep(name: string, make: () => Secret): Promise<KeptSecret>;
  /**
   * Keep this value under the name, whether there was one or not; the old value is gone when this resolves. Throws like `keep`.
   */
  replace(name: string, value: Secret): Promise<void>;
}

export interface KeptSecret {
  readonly value: Secret;
  /** True when this call made it, so that it can be shown once. */
  readonly created: boolean;
}

/**
 * Thrown by `keep` and `replace` when the place where secrets are kept cannot be read or written. Its message holds no secret.
 */
export class SecretsUnavailable extends Error {
  override readonly name = "SecretsUnavailable";
}

export const secrets: Port<Secrets> = definePort<Secrets>("secrets");
