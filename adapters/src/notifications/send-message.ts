import { createHmac } from "node:crypto";
import { orAborted, type ports, type Secret } from "@portico/core";
import type { PatientFetch } from "../outbound/patient-fetch.ts";
import { signingKey } from "./notification-options.ts";

/** Of one attempt, with its connection and the head of the answer. Standard Webhooks recommends 15 to 30 seconds. */
const ATTEMPT_MS = 15_000;
const CODE = /^\w{1,64}$/;

/** Where messages are sent, and with what. */
export interface Target {
  readonly url: Secret;
  readonly secret: Secret;
  readonly clock: ports.Clock;
  readonly connections: PatientFetch;
}

/** One message. Every attempt sends the same id and body. */
export interface Message {
  readonly id: string;
  readonly body: string;
}

/** The end of an attempt. `code` is a status or the code of an error. */
export type Sent =
  | { readonly isDelivered: true }
  | { readonly isDelivered: false; readonly code: string; readonly isFinal: boolean };

/**
 * Sends a message once, as Standard Webhooks says (https://www.standardwebhooks.com): a status 2xx delivers it, a redirect is a failure, and 410
 * says that the receiver wants no more attempts. Rejects only with the reason of the signal.
 */
export async function sendMessage(
  { url, secret, clock, connections }: Target,
  message: Message,
  signal: AbortSignal,
): Promise<Sent> {
  const late = new AbortController();
  const timer = clock.after(ATTEMPT_MS, () =>
    late.abort(new DOMException("The receiver did not answer in time", "TimeoutError")),
  );
  const until = AbortSignal.any([late.signal, signal]);
  try {
    const request = connections.fetch(url.reveal(), {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/json", ...signed(message, secret, clock.now()) },
      body: message.body,
      signal: until,
    });
    const { status, body } = await orAborted(request, until);
    // The answer is not read, however long it is.
    void body?.cancel().catch(() => {});
    return status >= 200 && status < 300
      ? { isDelivered: true }
      : { isDelivered: false, code: String(status), isFinal: status === 410 };
  } catch (error) {
    signal.throwIfAborted();
    return { isDelivered: false, code: codeOf(error), isFinal: false };
  } finally {
    timer.cancel();
  }
}

/** The headers of Standard Webhooks. The time is that of the attempt, because receivers refuse old ones. */
function signed({ id, body }: Message, secret: Secret, now: number): Record<string, string> {
  const time = String(Math.floor(now / 1000));
  const signature = createHmac("sha256", signingKey(secret.reveal())!).update(`${id}.${time}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": `v1,${signature}` };
}

/** The code of the innermost cause of a failed request that has one. Messages quote addresses. */
export function codeOf(error: unknown): string {
  let found = "unreachable";
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    const { code, name } = each as { readonly code?: unknown; readonly name: string };
    if (name === "TimeoutError") found = "timeout";
    if (typeof code === "string" && CODE.test(code)) found = code;
  }
  return found;
}
