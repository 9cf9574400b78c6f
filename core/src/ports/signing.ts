import { definePort, type Port } from "../grammar/port.ts";

/**
 * Short signatures with the instance's key, for texts that the instance issues and must recognise later: links, tickets. A
 * purpose separates them: a signature made for one purpose is invalid for another. The key comes from the instance and is never
 * exposed. Every function throws TypeError for an invalid purpose (`isSigningPurpose`), and SigningUnavailable without a key.
 */
export interface Signing {
  /**
   * The signature of a message: HMAC-SHA-256 over its UTF-8, in base64url without padding, 43 characters. HKDF-SHA-256 derives
   * the key from the instance's key for this purpose alone. The same message has the same signature for as long as the instance
   * keeps its key. Throws TypeError for a message that is not well-formed Unicode.
   */
  sign(purpose: string, message: string): Promise<string>;
  /**
   * Whether `signature` equals, letter for letter, the result of `sign` for the purpose and the message. False for any other
   * input. Compares in constant time.
   */
  verify(purpose: string, message: string, signature: string): Promise<boolean>;
}

/**
 * Whether a text is a valid purpose: 1-64 of `a-z`, `0-9` and `-`. Purposes are constants in code, and few: adapters may cache a
 * key for each.
 */
export function isSigningPurpose(purpose: string): boolean {
  return typeof purpose === "string" && /^[a-z0-9-]{1,64}$/.test(purpose);
}

/** Thrown when the instance has no signing key, or cannot reach it. */
export class SigningUnavailable extends Error {
  override readonly name = "SigningUnavailable";
}

/** The port of signing. */
export const signing: Port<Signing> = definePort<Signing>("signing");
