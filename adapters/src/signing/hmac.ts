import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";
import { defineAdapter, ports, type Secret } from "@portico/core";

export interface HmacSigningOptions {
  /**
   * What the keys of all purposes derive from; without one, every call throws SigningUnavailable. Whoever holds a signature can try out
   * guesses at it: it has to be random.
   */
  readonly key: Secret | undefined;
}

/** Signatures in this process, with a key that is given. Opening throws TypeError for an empty one. */
export const hmacSigning = defineAdapter({
  name: "signing/hmac",
  port: ports.signing,
  needs: {},
  open: (_given, { key }: HmacSigningOptions) => createHmacSigning(key),
});

const DIGEST_BYTES = 32;
/** Keeps these keys apart from whatever else is ever derived from the same secret. */
const DERIVATION = "portico/signing";

function createHmacSigning(key: Secret | undefined): ports.Signing {
  if (key?.reveal() === "") throw new TypeError("The key to sign with is empty");
  const ofPurposes = new Map<string, KeyObject>();

  function keyOf(purpose: string): KeyObject {
    if (!ports.isSigningPurpose(purpose)) throw new TypeError("A signing purpose is 1-64 of a-z, 0-9 and -");
    if (key === undefined) throw new ports.SigningUnavailable("There is no key to sign with");
    const known = ofPurposes.get(purpose);
    if (known) return known;
    // A key object is made once: of bytes, createHmac makes one at every call, which takes longer than the signature.
    const derived = createSecretKey(new Uint8Array(hkdfSync("sha256", key.reveal(), DERIVATION, purpose, DIGEST_BYTES)));
    ofPurposes.set(purpose, derived);
    return derived;
  }

  return {
    async sign(purpose, message) {
      const purposeKey = keyOf(purpose);
      // UTF-8 would hold a lone surrogate as U+FFFD, so that two messages had one signature.
      if (!message.isWellFormed()) throw new TypeError("A message to sign must be one that UTF-8 can hold");
      return signatureOf(purposeKey, message);
    },
    async verify(purpose, message, signature) {
      const purposeKey = keyOf(purpose);
      if (!message.isWellFormed() || !isSignature(signature)) return false;
      // The letters and not the bytes: four last letters stand for the same bytes, and one of them is right.
      return timingSafeEqual(Buffer.from(signature), Buffer.from(signatureOf(purposeKey, message)));
    },
  };
}

function signatureOf(key: KeyObject, message: string): string {
  return createHmac("sha256", key).update(message, "utf8").digest("base64url");
}

/** Decoding would be lenient: Node passes over characters that are none of base64url. */
function isSignature(text: string): boolean {
  return typeof text === "string" && /^[A-Za-z0-9_-]{43}$/.test(text);
}
