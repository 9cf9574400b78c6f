import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { defineAdapter, ports, type Secret } from "@portico/core";

export interface HmacSigningOptions {
  /** What keys derive from; undefined: nothing can be signed. */
  readonly key: Secret | undefined;
}

const PURPOSE = /^[a-z0-9-]{1,64}$/;
const SIGNATURE = /^[A-Za-z0-9_-]{43}$/;
const SALT = "portico-signing-1";

/** Signatures of one process or of several that share the key. After opening it keeps derived keys alone. */
export const hmacSigning = defineAdapter({
  name: "signing/hmac",
  port: ports.signing,
  needs: {},
  open: (_given, { key }: HmacSigningOptions): ports.Signing => createHmacSigning(key),
});

/** The same outside an app. */
export function createHmacSigning(key: Secret | undefined): ports.Signing {
  const derived = new Map<string, Buffer>();
  const keyOf = (purpose: string): Buffer => {
    if (!PURPOSE.test(purpose)) throw new TypeError("A purpose is 1-64 of lowercase letters, digits and -");
    if (key === undefined) throw new ports.SigningUnavailable("There is no key to sign with");
    const known = derived.get(purpose) ?? Buffer.from(hkdfSync("sha256", key.reveal(), SALT, purpose, 32));
    derived.set(purpose, known);
    return known;
  };
  const signed = (purpose: string, message: string) => createHmac("sha256", keyOf(purpose)).update(message).digest("base64url");
  return {
    sign: async (purpose, message) => signed(purpose, message),
    async verify(purpose, message, signature) {
      const expected = signed(purpose, message);
      // As texts: the last character has two bits that count for nothing, and four of them would stand for the same bytes.
      return SIGNATURE.test(signature) && timingSafeEqual(Buffer.from(expected), Buffer.from(signature));
    },
  };
}
