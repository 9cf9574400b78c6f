import { createHmac, randomUUID } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";

/** What a vendor sends: the headers, and the exact body. */
export interface SentNotification {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** When a notification was signed, in seconds since 1970. */
const seconds = () => Math.floor(Date.now() / 1000);

/** A notification of GitHub, signed by its own package. */
export async function fromGithub(
  secret: string,
  event: string,
  payload: object,
  { form = false }: { readonly form?: boolean } = {},
): Promise<SentNotification> {
  const json = JSON.stringify(payload);
  const body = form ? new URLSearchParams({ payload: json }).toString() : json;
  const headers = {
    "content-type": form ? "application/x-www-form-urlencoded" : "application/json",
    "x-github-event": event,
    "x-github-delivery": randomUUID(),
    "x-hub-signature-256": await sign(secret, body),
  };
  return { headers, body };
}

/** A notification of Stripe, as https://docs.stripe.com/webhooks#verify-manually describes it. A text is sent unchanged. */
export function fromStripe(secret: string, payload: object | string, at = seconds()): SentNotification {
  const body = typeof payload === "string" ? payload : JSON.stringify(payload);
  const signature = hmac(secret, `${at}.${body}`);
  return { headers: { "content-type": "application/json", "stripe-signature": `t=${at},v1=${signature},v0=${signature}` }, body };
}

/** A request of Slack, as https://docs.slack.dev/authentication/verifying-requests-from-slack describes it. */
export function fromSlack(secret: string, payload: object, at = seconds()): SentNotification {
  const body = JSON.stringify(payload);
  const headers = {
    "content-type": "application/json",
    "x-slack-request-timestamp": `${at}`,
    "x-slack-signature": `v0=${hmac(secret, `v0:${at}:${body}`)}`,
  };
  return { headers, body };
}

/** A message of Standard Webhooks, signed by the project's own package. */
export function fromStandard(
  secret: string,
  payload: object,
  { id = `msg_${randomUUID()}`, at = seconds(), prefix = "webhook" } = {},
): SentNotification {
  const body = JSON.stringify(payload);
  const signature = new Webhook(secret).sign(id, new Date(at * 1000), body);
  const headers = {
    "content-type": "application/json",
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: `${at}`,
    [`${prefix}-signature`]: signature,
  };
  return { headers, body };
}

function hmac(secret: string, text: string): string {
  return createHmac("sha256", secret).update(text).digest("hex");
}
