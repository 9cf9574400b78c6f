import type { CredentialPrefix } from "./credential-prefixes.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import { type Signing, SigningUnavailable } from "./ports/signing.ts";
import { Secret } from "./secret.ts";

/** One kind of short-lived tokens: constants in code. */
export interface SignedTokenKind {
  /** Purpose of the signature. Tokens of one purpose are not accepted for another. */
  readonly purpose: string;
  /** The first characters of every token of this kind. */
  readonly prefix: CredentialPrefix;
  /** Milliseconds. */
  readonly lifetimeMs: number;
}

/** The facts about a token. */
export interface SignedToken {
  /** Identifies the token. It is not a credential. */
  readonly tokenId: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Issues and reads tokens of one kind. */
export interface SignedTokens {
  /** A new token. Throws SigningUnavailable if the instance has no key. */
  issue(): Promise<SignedToken & { readonly token: Secret }>;
  /**
   * Reads a presented text. Undefined unless it is a token of this kind that this instance issued and that has not expired. Without
   * a key, every text is refused. Compares in constant time.
   */
  read(presented: string): Promise<SignedToken | undefined>;
}

/**
 * Tokens that expire and that no store keeps: the instance signs their ID and expiry time. Every process with the instance's key
 * issues and accepts them. They end with the key.
 */
export function createSignedTokens(
  { purpose, prefix, lifetimeMs }: SignedTokenKind,
  { signing, clock, ids }: { readonly signing: Signing; readonly clock: Clock; readonly ids: Ids },
): SignedTokens {
  return {
    async issue() {
      const expiresAt = Math.floor(clock.now() + lifetimeMs);
      const tokenId = ids.id(prefix);
      const message = `${tokenId}.${expiresAt}`;
      return { tokenId, expiresAt, token: new Secret(`${message}.${await signing.sign(purpose, message)}`) };
    },
    async read(presented) {
      const found = presented.startsWith(prefix) ? FORM.exec(presented) : null;
      if (!found) return undefined;
      const [, message = "", tokenId = "", digits = "", signature = ""] = found;
      try {
        if (!(await signing.verify(purpose, message, signature))) return undefined;
      } catch (error) {
        if (error instanceof SigningUnavailable) return undefined;
        throw error;
      }
      const expiresAt = Number(digits);
      return expiresAt > clock.now() ? { tokenId, expiresAt } : undefined;
    },
  };
}

const FORM = /^(([A-Za-z0-9_-]{1,128})\.(\d{1,16}))\.([A-Za-z0-9_-]{43})$/;
