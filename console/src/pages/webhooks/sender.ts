import type { CallResult } from "@portico/core/client";
import type { SenderKind } from "@portico/plugins/agent-webhook/client";
import type { agentWebhookContract } from "@portico/plugins/agent-webhook/contract";

/** A sender whose signed notifications an agent takes. */
export type Sender = CallResult<typeof agentWebhookContract.senders>["items"][number];

/** What a person has to know of a kind of senders. */
interface KindWords {
  readonly title: string;
  readonly secretHint: string;
  /** How to connect such a sender, in their order. */
  readonly steps: readonly string[];
  /** An event of such senders, as an example. */
  readonly event: string;
}

export const KINDS: Readonly<Record<SenderKind, KindWords>> = {
  github: {
    title: "GitHub",
    secretHint: "Leave it empty to get one that you enter at GitHub",
    steps: [
      "Name the events here, such as pull_request.opened, or pull_request for all its actions. Create the sender, and copy the secret.",
      "At GitHub, open Settings › Webhooks › Add webhook of the repository or organization.",
      "Payload URL: the address of the sender. Content type: application/json. Secret: the copied secret.",
      "Select the same events there. GitHub sends a ping first, which is listed as ignored.",
    ],
    event: "pull_request.opened",
  },
  slack: {
    title: "Slack",
    secretHint: "The signing secret of the Slack app, under Basic Information",
    steps: [
      "At api.slack.com/apps, open the app. Copy the signing secret of Basic Information to here.",
      "Name the events here, such as app_mention, and create the sender.",
      "At Slack, open Event Subscriptions, switch them on, and enter the address of the sender as the request URL. Slack verifies it at once.",
      "Subscribe to the same bot events there, and install the app again.",
    ],
    event: "app_mention",
  },
  standard: {
    title: "Standard Webhooks",
    secretHint: "The sender’s secret, which begins with whsec_. Leave it empty to get one",
    steps: [
      "Name the events here by the field type of their bodies, and create the sender.",
      "Enter the address and the secret of the sender at the service that sends.",
    ],
    event: "user.created",
  },
  stripe: {
    title: "Stripe",
    secretHint: "The signing secret of the endpoint at Stripe, which begins with whsec_",
    steps: [
      "At Stripe, open Developers › Webhooks, and add an endpoint with the address of the sender. Select the events, such as invoice.paid.",
      "Copy the signing secret of the endpoint to here.",
      "Name the same events here, and create the sender. Until then, Stripe’s deliveries are refused, and Stripe repeats them.",
    ],
    event: "invoice.paid",
  },
};
