import { createHash } from "node:crypto";
import { isRecord } from "@portico/core/contract";
import type { SenderKind } from "./sender-rules.ts";
import type { SignedRequest, VerifiedRequest } from "./verify-signature.ts";

/** What a sender tells, in the terms of its vendor. */
export interface Notification {
  /** The names of the event, the most specific first: `pull_request.opened`, `pull_request`. */
  readonly names: readonly string[];
  /** Identifies the delivery. A repetition, also of an attacker, has the same. */
  readonly delivery: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** The sender asks whether this endpoint is its owner's: the text is sent back. */
  readonly challenge?: string;
}

interface Known extends Omit<Notification, "delivery" | "payload"> {
  /** The signed id of the delivery, where the vendor has one. */
  readonly id?: unknown;
}

type Payload = Readonly<Record<string, unknown>>;

const ID_LENGTH = 256;

/** Reads a notification whose signature was verified. Undefined if it does not name its event. */
export function readNotification(
  kind: SenderKind,
  { header, body }: SignedRequest,
  { payload, verified }: { readonly payload: Payload; readonly verified: VerifiedRequest },
): Notification | undefined {
  const known = READERS[kind](payload, { header, verified });
  if (!known) return undefined;
  const { id, ...rest } = known;
  const hasId = typeof id === "string" && id !== "" && id.length <= ID_LENGTH;
  return { ...rest, payload, delivery: digestOf(hasId ? `id:${id}` : `body:${body}`) };
}

const READERS: Readonly<
  Record<
    SenderKind,
    (
      payload: Payload,
      about: { readonly header: SignedRequest["header"]; readonly verified: VerifiedRequest },
    ) => Known | undefined
  >
> = {
  /**
   * GitHub signs neither the delivery's id nor the event's name (https://docs.github.com/en/webhooks/webhook-events-and-payloads), so only
   * the body can tell a repetition.
   */
  github({ action }, { header }) {
    const name = header("x-github-event");
    if (!name) return undefined;
    return { names: typeof action === "string" ? [`${name}.${action}`, name] : [name] };
  },
  /**
   * https://docs.slack.dev/apis/events-api. A message with a subtype, or of a bot, is not a `message`: an agent that answers in a channel would
   * answer itself.
   */
  slack({ type, event, event_id: id, challenge }) {
    if (type === "url_verification" && typeof challenge === "string") return { names: [], challenge };
    if (type !== "event_callback" || !isRecord(event)) return typeof type === "string" ? { names: [type], id } : undefined;
    const { type: name, subtype = event["bot_id"] === undefined ? undefined : "bot_message" } = event;
    if (typeof name !== "string") return undefined;
    return { names: [name === "message" && typeof subtype === "string" ? `${name}.${subtype}` : name], id };
  },
  standard({ type }, { verified: { messageId } }) {
    return typeof type === "string" ? { names: [type], id: messageId } : undefined;
  },
  /** https://docs.stripe.com/api/events/object and https://docs.stripe.com/api/v2/core/events/object */
  stripe({ type, id }) {
    return typeof type === "string" ? { names: [type], id } : undefined;
  },
};

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
