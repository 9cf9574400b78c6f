import { SENDER_NAME_LENGTH } from "../limits.ts";

/** Whose rules of signatures senders follow. */
export const SENDER_KINDS = ["github", "slack", "standard", "stripe"] as const;

/** One of them. */
export type SenderKind = (typeof SENDER_KINDS)[number];

const NAME = /^[a-z0-9][a-z0-9-]*$/;
/** Base64 with an optional prefix. */
const STANDARD_SECRET = /^(?:whsec_)?[A-Za-z0-9+/]+={0,2}$/;

/** Whether a sender can have this name. */
export function isSenderName(name: string): boolean {
  return name.length <= SENDER_NAME_LENGTH && NAME.test(name);
}

/** Whether the vendor makes the secret, and takes no other. */
export function makesItsSecret(kind: SenderKind): boolean {
  return kind === "slack" || kind === "stripe";
}

/** Whether a text can be the secret of a sender of this kind. */
export function isSenderSecret(kind: SenderKind, secret: string): boolean {
  return kind === "standard" ? STANDARD_SECRET.test(secret) : secret.length > 0;
}
