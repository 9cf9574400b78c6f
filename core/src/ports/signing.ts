import { definePort, type Port } from "../port.ts";

/**
 * Signatures that this instance makes and knows again: HMAC-SHA-256 with a key that is derived from the instance's own, another for each
 * purpose. Both functions throw SigningUnavailable where there is no key, and TypeError for a purpose that is none: 1-64 of lowercase
 * letters, digits and `-`.
 */
export interface Signing {
  /** 43 characters of base64url. */
  sign(purpose: string, message: string): Promise<string>;
  /** Whether that is the signature, whatever a stranger sent; in constant time. */
  verify(purpose: string, message: string, signature: string): Promise<boolean>;
}

/** Thrown where nothing can be signed. */
export class SigningUnavailable extends Error {
  override readonly name = "SigningUnavailable";
}

export const signing: Port<Signing> = definePort<Signing>("signing");
