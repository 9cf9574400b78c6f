import type { CallResult } from "@portico/core/client";
import type { SenderKind } from "@portico/plugins/agent-webhook/client";
import type { agentWebhookContract } from "@portico/plugins/agent-webhook/contract";

/** A sender whose signed notifications an agent takes. */
export type Sender = CallResult<typeof agentWebhookContract.senders>["items"][number];

/** What a person has to know of a kind of senders. */
interface KindWords {
  readonly title: string;
  readonly secretHint: string;
  readonly addressHint: string;
  /** An event of such senders, as an example. */
  readonly event: string;
}

export const KINDS: Readonly<Record<SenderKind, KindWords>> = {
  github: {
    title: "GitHub",
    secretHint: "Leave it empty to get one that you enter at GitHub",
    addressHint: "At GitHub, enter its address as the payload URL of a webhook, and its secret",
    event: "pull_request.opened",
  },
  slack: {
    title: "Slack",
    secretHint: "The signing secret of the Slack app, under Basic Information",
    addressHint: "At Slack, enter its address as the request URL of the app’s event subscriptions",
    event: "app_mention",
  },
  standard: {
    title: "Standard Webhooks",
    secretHint: "The sender’s secret, which begins with whsec_. Leave it empty to get one",
    addressHint: "Enter its address and its secret at the service that sends",
    event: "user.created",
  },
  stripe: {
    title: "Stripe",
    secretHint: "The signing secret of the endpoint at Stripe, which begins with whsec_",
    addressHint: "At Stripe, enter its address as that of an endpoint",
    event: "invoice.paid",
  },
};
