import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from "node:crypto";
import { createSystemClock, defineAdapter, type Live, optional, Overlap, ports, type Secret } from "@portico/core";

/** Options of `hmacSigning`. */
export interface HmacSigningOptions {
  /**
   * The key that the keys of all purposes derive from, or a function that finds it among the instance's secrets, such as
   * `keptKey`. Without a key, every call throws SigningUnavailable. It must be random, because the holder of a signature can test
   * guesses against it.
   */
  readonly key: SigningKey | undefined;
  /** The next keys, while the app is open. Default: the key never changes. */
  readonly rotation?: Live<SigningRotation> | undefined;
}

/** A key, or a function that finds it. */
export type SigningKey = Secret | ((secrets: ports.Secrets) => Promise<Secret>);

/** The key that replaces an earlier one. */
export interface SigningRotation {
  readonly key: SigningKey | undefined;
  /** How long signatures of the earlier key stay valid, in milliseconds. */
  readonly overlapMs: number;
  /**
   * When the new key signs, in milliseconds from now, at most `overlapMs`. Until then it only verifies. For processes that share
   * the key and do not get it at the same time. Default: at once.
   */
  readonly delayMs?: number | undefined;
}

/** Signatures in this process, with a given key. Opening throws TypeError for an empty key. */
export const hmacSigning = defineAdapter({
  name: "signing/hmac",
  port: ports.signing,
  needs: { secrets: optional(ports.secrets), clock: optional(ports.clock) },
  async open({ secrets, clock = createSystemClock() }, { key, rotation }: HmacSigningOptions, scope) {
    const find = async (given: SigningKey | undefined, signsFrom: number): Promise<PurposeKeys> => {
      if (typeof given !== "function") return new PurposeKeys(given, signsFrom);
      if (!secrets) throw new TypeError('The key to sign with is kept with port "secrets", which no adapter fills');
      return new PurposeKeys(await given(secrets), signsFrom);
    };
    const keys = new Overlap(await find(key, Number.NEGATIVE_INFINITY), { clock, isSame: (one, other) => one.equals(other) });
    scope.onClose(() => keys.close());
    if (rotation) {
      scope.onClose(
        rotation.follow(async ({ key: next, overlapMs, delayMs = 0 }) => {
          const found = await find(next, clock.now() + Math.min(delayMs, overlapMs));
          return () => keys.replace(keys.current.equals(found) ? keys.current : found, overlapMs);
        }),
      );
    }
    return createHmacSigning(keys, clock);
  },
});

const DIGEST_BYTES = 32;
/** Separates these keys from all others that are derived from the same secret. */
const DERIVATION = "portico/signing";

/** One key, and the keys of purposes that derive from it. */
class PurposeKeys {
  readonly signsFrom: number;
  readonly #key: Secret | undefined;
  readonly #ofPurposes = new Map<string, KeyObject>();

  constructor(key: Secret | undefined, signsFrom: number) {
    if (key?.reveal() === "") throw new TypeError("The key to sign with is empty");
    this.#key = key;
    this.signsFrom = signsFrom;
  }

  of(purpose: string): KeyObject {
    if (!ports.isSigningPurpose(purpose)) throw new TypeError("A signing purpose is 1-64 of a-z, 0-9 and -");
    if (this.#key === undefined) throw new ports.SigningUnavailable("There is no key to sign with");
    const known = this.#ofPurposes.get(purpose);
    if (known) return known;
    // A key object is created once: from bytes, createHmac would create one at every call, which takes longer than the signature.
    const derived = createSecretKey(new Uint8Array(hkdfSync("sha256", this.#key.reveal(), DERIVATION, purpose, DIGEST_BYTES)));
    this.#ofPurposes.set(purpose, derived);
    return derived;
  }

  equals(other: PurposeKeys): boolean {
    return this.#key?.reveal() === other.#key?.reveal();
  }
}

function createHmacSigning(keys: Overlap<PurposeKeys>, clock: ports.Clock): ports.Signing {
  /** The newest key that signs by now. The first one always does. */
  const signer = () => {
    const { current } = keys;
    if (current.signsFrom === Number.NEGATIVE_INFINITY) return current;
    const now = clock.now();
    return keys.all.findLast(({ signsFrom }) => signsFrom <= now) ?? current;
  };
  return {
    async sign(purpose, message) {
      const purposeKey = signer().of(purpose);
      // UTF-8 would replace a lone surrogate by U+FFFD, so that two messages had the same signature.
      if (!message.isWellFormed()) throw new TypeError("A message to sign must be one that UTF-8 can hold");
      return signatureOf(purposeKey, message);
    },
    async verify(purpose, message, signature) {
      const purposeKeys = keys.all.map((each) => each.of(purpose));
      if (!message.isWellFormed() || !isSignature(signature)) return false;
      const presented = Buffer.from(signature);
      // Compares the letters and not the bytes: four last letters decode to the same bytes, and one of them is valid.
      return purposeKeys.map((key) => timingSafeEqual(presented, Buffer.from(signatureOf(key, message)))).includes(true);
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
