import { Stripe } from "stripe";

/** The headers with which Stripe sends this body: its own package signs it. `timestamp` is in seconds, and now by default. */
export async function signNotification(payload: string, secret: string, timestamp?: number): Promise<Record<string, string>> {
  const options = { payload, secret, cryptoProvider: Stripe.createSubtleCryptoProvider(), ...(timestamp && { timestamp }) };
  return { "stripe-signature": await Stripe.webhooks.generateTestHeaderStringAsync(options) };
}
