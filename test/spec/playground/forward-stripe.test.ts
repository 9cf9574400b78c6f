import { Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { forwardStripe, fromStripe, start } from "../../../playground/stripe/forward-stripe.ts";
import { signNotification } from "../../../playground/stripe/sign-notification.ts";
import { testForwarder } from "../../harness/forwarder-rules.ts";
import { startWebhookService } from "../../harness/webhook-app.ts";

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
    return app.request("/stripe", { method: "POST", headers: await signNotification(body, "whsec_s", timestamp), body });
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

  it("signed just now is worked on by the agent that it triggers (4.4)", async () => {
    await using closing = new AsyncDisposableStack();
    const service = closing.adopt(await startWebhookService(), (opened) => opened.close());
    const secret = await service.save("stripe.invoice.paid", "{{customer}} paid {{amount}} {{currency}}");
    const forwarder = forwardStripe({
      secret: new Secret("whsec_s"),
      trigger: {
        url: `${service.url}/api/webhook/helper`,
        secret: new Secret(secret),
        events: ["stripe.invoice.paid"],
        answerWithinMs: 8000,
      },
    });
    const object = { id: "in_1", object: "invoice", customer: "cus_1", total: 500, currency: "eur", status: "paid" };
    const body = JSON.stringify({ id: "evt_1", object: "event", type: "invoice.paid", livemode: false, data: { object } });
    const headers = await signNotification(body, "whsec_s");
    const answer = await forwarder.fetch(new Request("http://forwarder/stripe", { method: "POST", headers, body }));
    expect(answer.status).toBe(200);
    await expect.poll(() => service.engine.played).toContain("cus_1 paid 500 eur");
  });
});

describe("the forwarder of Stripe", () => {
  testForwarder({
    start,
    path: "/stripe",
    event: "stripe.invoice.paid",
    body: (text) => JSON.stringify({ id: "evt_1", type: "invoice.paid", data: { object: { id: "in_1", extra: { text } } } }),
    headers: (body, secret) => signNotification(body, secret),
    signatureHeader: "stripe-signature",
    fields: { id: "evt_1", objectId: "in_1" },
    other: { id: "evt_2", type: "invoice.sent", data: { object: {} } },
  });
});
