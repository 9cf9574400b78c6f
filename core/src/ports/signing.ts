import { definePort, type Port } from "../port.ts";

/**
 * Short signatures with the instance's key, for what the instance hands out and must know again: links, tickets. A purpose divides
 * them: a signature made for one is none of another. The key comes from the instance; nobody sees it. Every function throws TypeError
 * for a purpose that is none (`isSigningPurpose`), and SigningUnavailable where there is no key.
 */
export interface Signing {
  /**
   * The signature of a message: HMAC-SHA-256 over its UTF-8, with a key that HKDF-SHA-256 derives from the instance's for this purpose
   * alone, in base64url without padding, 43 characters. The same message has the same signature for as long as the instance keeps its
   * key. Throws TypeError for a message that UTF-8 cannot hold.
   */
  sign(purpose: string, message: string): Promise<string>;
  /**
   * Whether this is, letter for letter, what `sign` gives for the purpose and the message; false for whatever else a stranger sent.
   * Compares in constant time.
   */
  verify(purpose: string, message: string, signature: string): Promise<boolean>;
}

/** Whether a text can be a purpose: 1-64 of `a-z`, `0-9` and `-`. Purposes are written in code, and few: adapters may keep a key for each. */
export function isSigningPurpose(purpose: string): boolean {
  return typeof purpose === "string" && /^[a-z0-9-]{1,64}$/.test(purpose);
}

/** Thrown where the instance has no key to sign with, or cannot reach it. */
export class SigningUnavailable extends Error {
  override readonly name = "SigningUnavailable";
}

export const signing: Port<Signing> = definePort<Signing>("signing");
