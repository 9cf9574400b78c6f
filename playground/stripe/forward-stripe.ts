// Stripe's webhooks for an agent: verify, map, forward.
import { loadConfig, secretFromEnv } from "@portico/core";
import { bodyLimit, H3, HTTPError } from "h3";
import { toNodeHandler } from "h3/node";
import { Stripe } from "stripe";
import * as v from "valibot";
import { type Listening, listen } from "../listen.ts";
import { openStandInTrigger } from "../stand-in-trigger.ts";
import { type AgentEvent, TRIGGER_BYTES, triggerAgent, triggerConfig } from "../trigger-agent.ts";
import { signNotification } from "./sign-notification.ts";

export const stripeConfig = v.strictObject({ secret: secretFromEnv("STRIPE_WEBHOOK_SECRET"), trigger: triggerConfig });

/** The fields that the mapping reads. Other fields of a notification are allowed. */
const stripeNotification = v.looseObject({
  id: v.string(),
  type: v.string(),
  data: v.looseObject({ object: v.looseObject({}) }),
});

/** `stripe.invoice.paid`, `stripe.charge.refunded`, …: Stripe's type, with the fields that prompts use. Amounts keep Stripe's unit. */
export function fromStripe(notification: v.InferOutput<typeof stripeNotification>): AgentEvent {
  const { object } = notification.data;
  return {
    event: `stripe.${notification.type}`,
    payload: {
      id: notification.id,
      livemode: notification.livemode,
      object: object.object,
      objectId: object.id,
      customer: object.customer,
      email: object.customer_email ?? object.receipt_email,
      amount: object.amount ?? object.amount_total ?? object.total,
      currency: object.currency,
      status: object.status,
      url: object.hosted_invoice_url ?? object.receipt_url,
      notification,
    },
  };
}

/** An application with `POST /stripe`. Mount its `fetch` in your own application, or listen on a port. */
export function forwardStripe({ secret, trigger }: v.InferOutput<typeof stripeConfig>): H3 {
  return new H3().use(bodyLimit(TRIGGER_BYTES)).post("/stripe", async ({ req }) => {
    // The signature covers exactly these bytes, so verify it before parsing.
    const body = await req.text();
    const signature = req.headers.get("stripe-signature") ?? "";
    const read = v.safeParse(stripeNotification, await verified(body, signature, secret.reveal()));
    if (!read.success) throw new HTTPError({ status: 400, message: NO_NOTIFICATION });
    return triggerAgent(trigger, fromStripe(read.output), req.signal);
  });
}

/** Starts the forwarder on its own port, configured by these environment variables. */
export function start(env: Readonly<Record<string, string | undefined>> = process.env): Promise<Listening> {
  return listen(toNodeHandler(forwardStripe(loadConfig(stripeConfig, { env }).value)));
}

const NO_NOTIFICATION = "This is no notification in a snapshot's format";
const webCrypto = Stripe.createSubtleCryptoProvider();

async function verified(body: string, signature: string, secret: string): Promise<unknown> {
  try {
    return await Stripe.webhooks.constructEventAsync(body, signature, secret, undefined, webCrypto);
  } catch (cause) {
    // The library's error contains the body, so it must not be passed on.
    if (!(cause instanceof Stripe.errors.StripeSignatureVerificationError))
      throw new HTTPError({ status: 400, message: NO_NOTIFICATION });
    throw new HTTPError({ status: 401, message: "The signature is missing, wrong or too old" });
  }
}

if (import.meta.main) {
  const secret = "whsec_a-secret-for-this-story";
  await using agent = await openStandInTrigger();
  await using forwarder = await start({ ...agent.env, AGENT_EVENTS: '["stripe.invoice.paid"]', STRIPE_WEBHOOK_SECRET: secret });
  const tell = async (type: string, object: object) => {
    const payload = JSON.stringify({ id: "evt_1", object: "event", type, data: { object } });
    const headers = await signNotification(payload, secret);
    const answer = await fetch(`${forwarder.url}/stripe`, { method: "POST", headers, body: payload });
    console.log(`${type}: ${answer.status}`);
  };
  await tell("customer.created", { object: "customer", id: "cus_1" });
  await tell("invoice.paid", { object: "invoice", id: "in_1", customer: "cus_1", total: 4200, currency: "eur", status: "paid" });
}
