import { Secret } from "@portico/core";
import { Stripe } from "stripe";
import { describe, expect, it } from "vitest";
import { forwardStripe, fromStripe } from "../../../playground/forward-stripe.ts";

describe("a notification of Stripe", () => {
  it("of an invoice has the event of its type, and what was paid by whom", () => {
    const object = {
      id: "in_1",
      object: "invoice",
      customer: "cus_1",
      customer_email: "ada@example.com",
      total: 4200,
      currency: "eur",
      status: "paid",
      hosted_invoice_url: "https://invoice.example/in_1",
    };
    const notification = { id: "evt_1", object: "event", type: "invoice.paid", livemode: false, data: { object } };
    expect(fromStripe(notification)).toEqual({
      event: "stripe.invoice.paid",
      payload: {
        id: "evt_1",
        livemode: false,
        object: "invoice",
        objectId: "in_1",
        customer: "cus_1",
        email: "ada@example.com",
        amount: 4200,
        currency: "eur",
        status: "paid",
        url: "https://invoice.example/in_1",
        notification,
      },
    });
  });

  it.each([
    ["a charge", { object: "charge", amount: 500, receipt_email: "a@example.com", receipt_url: "https://r.example/1" }],
    ["a checkout", { object: "checkout.session", amount_total: 500, customer_email: "a@example.com" }],
  ])("of %s has the amount and the address that Stripe calls otherwise there", (_what, object) => {
    const { payload } = fromStripe({ id: "evt_1", type: "charge.succeeded", data: { object } });
    expect(payload).toMatchObject({ object: object.object, amount: 500, email: "a@example.com" });
    expect(payload["url"]).toBe("receipt_url" in object ? object.receipt_url : undefined);
  });

  const deliver = async (notification: object, timestamp: number) => {
    const app = forwardStripe({
      secret: new Secret("whsec_s"),
      trigger: { url: "http://127.0.0.1:1/", secret: new Secret("whs"), events: [], answerWithinMs: 1000 },
    });
    const body = JSON.stringify(notification);
    const signature = Stripe.webhooks.generateTestHeaderString({ payload: body, secret: "whsec_s", timestamp });
    return app.request("/stripe", { method: "POST", headers: { "stripe-signature": signature }, body });
  };
  const now = () => Math.floor(Date.now() / 1000);
  const event = { id: "evt_1", type: "invoice.sent", data: { object: {} } };

  it("signed ten minutes ago is 401: it may be a replay", async () => {
    expect((await deliver(event, now() - 600)).status).toBe(401);
    expect((await deliver(event, now())).status).toBe(204);
  });

  it("without the object itself (a thin event) is 400", async () => {
    const thin = { id: "evt_1", object: "v2.core.event", type: "v1.billing.meter.no_meter_found" };
    expect((await deliver(thin, now())).status).toBe(400);
  });
});
