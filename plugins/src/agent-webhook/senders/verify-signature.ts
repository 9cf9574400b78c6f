import { createHmac, timingSafeEqual } from "node:crypto";
import type { SenderKind } from "./sender-rules.ts";

/** What was signed, and where the signature is. */
export interface SignedRequest {
  /** By lowercase name. */
  header(name: string): string | undefined;
  /** The body's text. Its UTF-8 bytes are the bytes that arrived. */
  readonly body: string;
}

/** A request with a valid signature. */
export interface VerifiedRequest {
  /** The signed time, in milliseconds since 1970. Absent if the sender signs none. */
  readonly signedAt?: number;
  /** The signed id of the message, where it stands in a header. */
  readonly messageId?: string;
}

/** Where the parts of a signature are. */
interface Parts {
  /** Pieces that were signed one after another. */
  readonly signed: readonly string[];
  readonly signatures: readonly Buffer[];
  readonly key: (secret: string) => Buffer;
  readonly verified: VerifiedRequest;
}

/** Signatures in one header. Senders write several while they replace a secret. */
const MOST_SIGNATURES = 16;
const SHA256_BYTES = 32;

/**
 * Verifies the signature of a notification: HMAC-SHA256 in all four kinds. `secrets` are the ones that are valid now. Undefined if the
 * signature is missing, malformed, or made with another secret. It does not check the signed time. Compares in constant time.
 *
 * The vendors' packages verify one vendor each, and bring whole clients with them. All of them are in the tests, as oracles.
 */
export function verifySignature(
  kind: SenderKind,
  request: SignedRequest,
  secrets: readonly string[],
): VerifiedRequest | undefined {
  const parts = PARTS[kind](request);
  if (!parts) return undefined;
  const { signed, signatures, key, verified } = parts;
  let isValid = false;
  for (const secret of secrets) {
    const hmac = createHmac("sha256", key(secret));
    for (const piece of signed) hmac.update(piece);
    const expected = hmac.digest();
    // No early end: the time must not tell which secret or signature fits.
    for (const signature of signatures) isValid = timingSafeEqual(signature, expected) || isValid;
  }
  return isValid ? verified : undefined;
}

const PARTS: Readonly<Record<SenderKind, (request: SignedRequest) => Parts | undefined>> = {
  /** https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries */
  github({ header, body }) {
    const signature = hexAfter("sha256=", header("x-hub-signature-256") ?? "");
    return signature && { signed: [body], signatures: [signature], key: asText, verified: {} };
  },
  /** https://docs.slack.dev/authentication/verifying-requests-from-slack */
  slack({ header, body }) {
    const signature = hexAfter("v0=", header("x-slack-signature") ?? "");
    const time = header("x-slack-request-timestamp") ?? "";
    const signedAt = toMilliseconds(time);
    if (!signature || signedAt === undefined) return undefined;
    return { signed: [`v0:${time}:`, body], signatures: [signature], key: asText, verified: { signedAt } };
  },
  /**
   * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md. Senders that use Svix write `svix-` in place of
   * `webhook-` (https://docs.svix.com/receiving/verifying-payloads/how-manual).
   */
  standard({ header, body }) {
    const prefix = header("webhook-signature") === undefined ? "svix" : "webhook";
    const messageId = header(`${prefix}-id`) ?? "";
    const time = header(`${prefix}-timestamp`) ?? "";
    const signatures = (header(`${prefix}-signature`) ?? "")
      .split(" ", MOST_SIGNATURES)
      .flatMap((entry) => (entry.startsWith("v1,") ? toDigest(Buffer.from(entry.slice(3), "base64")) : []));
    const signedAt = toMilliseconds(time);
    if (signedAt === undefined || !messageId) return undefined;
    const key = (secret: string) => Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    return { signed: [`${messageId}.${time}.`, body], signatures, key, verified: { signedAt, messageId } };
  },
  /** https://docs.stripe.com/webhooks#verify-manually */
  stripe({ header, body }) {
    const entries = (header("stripe-signature") ?? "").split(",", MOST_SIGNATURES);
    const time = entries.find((entry) => entry.startsWith("t="))?.slice(2) ?? "";
    const signedAt = toMilliseconds(time);
    if (signedAt === undefined) return undefined;
    const signatures = entries.flatMap((entry) => hexAfter("v1=", entry) ?? []);
    return { signed: [`${time}.`, body], signatures, key: asText, verified: { signedAt } };
  },
};

function asText(secret: string): Buffer {
  return Buffer.from(secret);
}

function hexAfter(prefix: string, text: string): Buffer | undefined {
  return text.startsWith(prefix) ? toDigest(Buffer.from(text.slice(prefix.length), "hex"))[0] : undefined;
}

/** `timingSafeEqual` throws for buffers of different lengths. */
function toDigest(bytes: Buffer): readonly Buffer[] {
  return bytes.length === SHA256_BYTES ? [bytes] : [];
}

/** Seconds since 1970, of at most twelve digits. */
function toMilliseconds(seconds: string): number | undefined {
  return /^\d{1,12}$/.test(seconds) ? Number(seconds) * 1000 : undefined;
}
