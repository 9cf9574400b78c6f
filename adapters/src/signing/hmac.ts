import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";
import { defineAdapter, optional, ports, type Secret } from "@portico/core";

/** Options of `hmacSigning`. */
export interface HmacSigningOptions {
  /**
   * The key that the keys of all purposes derive from, or a function that finds it among the instance's secrets, such as
   * `keptKey`. Without a key, every call throws SigningUnavailable. It must be random, because the holder of a signature can test
   * guesses against it.
   */
  readonly key: Secret | ((secrets: ports.Secrets) => Promise<Secret>) | undefined;
}

/** Signatures in this process, with a given key. Opening throws TypeError for an empty key. */
export const hmacSigning = defineAdapter({
  name: "signing/hmac",
  port: ports.signing,
  needs: { secrets: optional(ports.secrets) },
  async open({ secrets }, { key }: HmacSigningOptions) {
    if (typeof key !== "function") return createHmacSigning(key);
    if (!secrets) throw new TypeError('The key to sign with is kept with port "secrets", which no adapter fills');
    return createHmacSigning(await key(secrets));
  },
});

const DIGEST_BYTES = 32;
/** Separates these keys from all others that are derived from the same secret. */
const DERIVATION = "portico/signing";

function createHmacSigning(key: Secret | undefined): ports.Signing {
  if (key?.reveal() === "") throw new TypeError("The key to sign with is empty");
  const ofPurposes = new Map<string, KeyObject>();

  function keyOf(purpose: string): KeyObject {
    if (!ports.isSigningPurpose(purpose)) throw new TypeError("A signing purpose is 1-64 of a-z, 0-9 and -");
    if (key === undefined) throw new ports.SigningUnavailable("There is no key to sign with");
    const known = ofPurposes.get(purpose);
    if (known) return known;
    // A key object is created once: from bytes, createHmac would create one at every call, which takes longer than the signature.
    const derived = createSecretKey(new Uint8Array(hkdfSync("sha256", key.reveal(), DERIVATION, purpose, DIGEST_BYTES)));
    ofPurposes.set(purpose, derived);
    return derived;
  }

  return {
    async sign(purpose, message) {
      const purposeKey = keyOf(purpose);
      // UTF-8 would replace a lone surrogate by U+FFFD, so that two messages had the same signature.
      if (!message.isWellFormed()) throw new TypeError("A message to sign must be one that UTF-8 can hold");
      return signatureOf(purposeKey, message);
    },
    async verify(purpose, message, signature) {
      const purposeKey = keyOf(purpose);
      if (!message.isWellFormed() || !isSignature(signature)) return false;
      // Compares the letters and not the bytes: four last letters decode to the same bytes, and one of them is valid.
      return timingSafeEqual(Buffer.from(signature), Buffer.from(signatureOf(purposeKey, message)));
    },
  };
}

function signatureOf(key: KeyObject, message: string): string {
  return createHmac("sha256", key).update(message, "utf8").digest("base64url");
}

/** Decoding would be lenient: Node ignores characters outside of base64url. */
function isSignature(text: string): boolean {
  return typeof text === "string" && /^[A-Za-z0-9_-]{43}$/.test(text);
}
