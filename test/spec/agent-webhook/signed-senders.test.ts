import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fromGithub, fromSlack, fromStandard, fromStripe, type SentNotification } from "../../harness/signed-notifications.ts";
import { startWebhookService, type WebhookService } from "../../harness/webhook-app.ts";

let service: WebhookService;
const secrets: Record<string, string> = { stripe: "whsec_of_stripe", slack: "signing-secret-of-slack" };

beforeAll(async () => {
  service = await startWebhookService();
  await service.save("review", "Review {{pull_request.title}} of {{repository.full_name}} by {{webhook.sender}}");
  await service.save("labels", "{{webhook.event}}: {{labels.0.name}} {{labels.length}} {{a.b}} {{missing.field}}");
  await service.save("paid", "{{data.object.customer}} paid {{data.object.amount}}");
  await service.save("mention", "{{event.user}} says {{event.text}}");
  await service.save("signed-up", "{{type}} {{data.email}}");
  const senders = {
    github: { "pull_request.opened": "review", issues: "labels", "issues.closed": "review" },
    stripe: { "invoice.paid": "paid" },
    slack: { app_mention: "mention", message: "mention" },
    standard: { "user.created": "signed-up" },
  };
  for (const [kind, events] of Object.entries(senders)) {
    const secret = secrets[kind];
    const saved = await service.manage("PUT", `helper/webhooks/senders/${kind}`, { kind, events, ...(secret && { secret }) });
    expect([saved.status, saved.body.path]).toEqual([200, `/api/webhook/helper/${kind}`]);
    secrets[kind] ??= saved.body.secret;
  }
});
afterAll(() => service.close());

const send = async (sender: string, { headers, body }: SentNotification, agent = "helper") => {
  const answer = await service.call(undefined, "POST", `/api/webhook/${agent}/${sender}`, body, headers);
  return [answer.status, answer.body] as const;
};
const accepted = (event: string) => [200, { accepted: true, agentId: "helper", event }];
const repeated = (event: string) => [200, { accepted: true, agentId: "helper", event, duplicate: true }];
const refused = (status: number, error: string) => [status, { error }];
/** A form without GitHub's field. */
const signedForm = async (body: string): Promise<SentNotification> => {
  const { headers } = await fromGithub(secrets["github"]!, "push", {}, { form: true });
  return { headers: { ...headers, "x-hub-signature-256": await sign(secrets["github"]!, body) }, body };
};
const played = () => service.engine.played;

const pull = (title: string) => ({ action: "opened", pull_request: { title }, repository: { full_name: "ada/tea" } });
const paid = (id: string) => ({ id, type: "invoice.paid", data: { object: { customer: id, amount: 700 } } });
const mention = (id: string, event: object = {}) => ({
  type: "event_callback",
  event_id: id,
  event: { type: "app_mention", user: "U1", text: id, ...event },
});
const signedUp = (email: string) => ({ type: "user.created", data: { email } });

describe("a notification that its sender signed", () => {
  it.each([false, true])("GitHub: JSON, or the form that GitHub sends by default (%s)", async (form) => {
    const sent = await fromGithub(secrets["github"]!, "pull_request", pull(`Milk ${form}`), { form });
    expect(await send("github", sent)).toEqual(accepted("review"));
    await expect.poll(played).toContain(`Review Milk ${form} of ada/tea by github`);
  });

  it("Stripe", async () => {
    expect(await send("stripe", fromStripe(secrets["stripe"]!, paid("cus_1")))).toEqual(accepted("paid"));
    await expect.poll(played).toContain("cus_1 paid 700");
  });

  it("Slack", async () => {
    expect(await send("slack", fromSlack(secrets["slack"]!, mention("Hello")))).toEqual(accepted("mention"));
    await expect.poll(played).toContain("U1 says Hello");
  });

  it.each(["webhook", "svix"])("Standard Webhooks, with the headers %s-*", async (prefix) => {
    const email = `${prefix}@example.org`;
    const sent = fromStandard(secrets["standard"]!, signedUp(email), { prefix });
    expect(await send("standard", sent)).toEqual(accepted("signed-up"));
    await expect.poll(played).toContain(`user.created ${email}`);
  });

  it("may have several signatures, of which one is valid", async () => {
    const sent = fromStandard(secrets["standard"]!, signedUp("two@example.org"));
    const other = fromStandard("whsec_b3RoZXI=", signedUp("two@example.org"));
    const signatures = `${other.headers["webhook-signature"]} v1a,AAAA ${sent.headers["webhook-signature"]}`;
    const headers = { ...sent.headers, "webhook-signature": signatures };
    expect(await send("standard", { ...sent, headers })).toEqual(accepted("signed-up"));
  });
});

describe("the events of a sender", () => {
  it("the more specific name counts: an action of GitHub before its event", async () => {
    const closed = { action: "closed", pull_request: { title: "Closed" }, repository: { full_name: "ada/tea" } };
    expect(await send("github", await fromGithub(secrets["github"]!, "issues", closed))).toEqual(accepted("review"));
    const opened = { action: "opened", labels: [{ name: "bug" }], "a.b": "exact" };
    expect(await send("github", await fromGithub(secrets["github"]!, "issues", opened))).toEqual(accepted("labels"));
  });

  it("a template names fields by their paths, also of lists; a field of exactly this name comes first; a missing one stays", async () => {
    await expect.poll(played).toContain("issues: bug {{labels.length}} exact {{missing.field}}");
  });

  it("200 with accepted false, and no run, for an event that is not mapped, such as GitHub's ping", async () => {
    const before = played().length;
    const ping = await fromGithub(secrets["github"]!, "ping", { zen: "Tea." });
    expect(await send("github", ping)).toEqual([200, { accepted: false, reason: "not_mapped" }]);
    expect(await send("stripe", fromStripe(secrets["stripe"]!, { id: "evt_9", type: "charge.failed" }))).toEqual([
      200,
      { accepted: false, reason: "not_mapped" },
    ]);
    expect(played().length).toBe(before);
  });

  it("a message of a bot in Slack, or one with a subtype, is not a message: an agent does not answer itself", async () => {
    const of = (id: string, more: object) => fromSlack(secrets["slack"]!, mention(id, { type: "message", ...more }));
    expect(await send("slack", of("person", {}))).toEqual(accepted("mention"));
    for (const more of [{ bot_id: "B1" }, { subtype: "channel_join" }])
      expect(await send("slack", of(JSON.stringify(more), more))).toEqual([200, { accepted: false, reason: "not_mapped" }]);
  });

  it("400 for a notification that names no event", async () => {
    const nameless = refused(400, "The notification does not name its event");
    const { headers, body } = await fromGithub(secrets["github"]!, "push", {});
    const { "x-github-event": _event, ...others } = headers;
    expect(await send("github", { headers: others, body })).toEqual(nameless);
    for (const payload of [{}, { type: 7 }]) {
      expect(await send("stripe", fromStripe(secrets["stripe"]!, payload))).toEqual(nameless);
      expect(await send("slack", fromSlack(secrets["slack"]!, payload))).toEqual(nameless);
      expect(await send("standard", fromStandard(secrets["standard"]!, payload))).toEqual(nameless);
    }
    expect(await send("slack", fromSlack(secrets["slack"]!, { type: "event_callback", event: { type: 7 } }))).toEqual(nameless);
  });
});

describe("Slack's question whether the address is its owner's", () => {
  const question = { type: "url_verification", token: "x", challenge: "3eZbrw1aBm2rZgRNFdxV" };
  it("is answered with the challenge", async () => {
    expect(await send("slack", fromSlack(secrets["slack"]!, question))).toEqual([200, { challenge: question.challenge }]);
  });

  it("is refused without Slack's signature", async () => {
    expect(await send("slack", fromSlack("wrong", question))).toEqual(refused(401, "The signature is missing or wrong"));
  });
});

describe("refusals", () => {
  const wrong = refused(401, "The signature is missing or wrong");
  const all: readonly [string, (secret: string) => SentNotification | Promise<SentNotification>, string][] = [
    ["github", (secret) => fromGithub(secret, "pull_request", pull("Refused")), "x-hub-signature-256"],
    ["stripe", (secret) => fromStripe(secret, paid("cus_refused")), "stripe-signature"],
    ["slack", (secret) => fromSlack(secret, mention("refused")), "x-slack-signature"],
    ["standard", (secret) => fromStandard(secret, signedUp("refused@example.org")), "webhook-signature"],
  ];

  it.each(all)(
    "401 of %s: another secret, another body, a signature that is cut, empty, of other bytes or missing",
    async (sender, sign, header) => {
      const secret = secrets[sender]!;
      expect(await send(sender, await sign(sender === "standard" ? "whsec_b3RoZXI=" : "other"))).toEqual(wrong);
      const sent = await sign(secret);
      expect(await send(sender, { ...sent, body: `${sent.body} ` })).toEqual(wrong);
      const { [header]: signature = "", ...others } = sent.headers;
      const [cut, changed] = ["", "A".repeat(20)].map((other) => signature.replaceAll(/[\w+/]{20}(?==?(?:,|$))/g, other));
      for (const bad of [cut!, changed!, "", ",", "v1=", "sha256=", " "])
        expect(await send(sender, { ...sent, headers: { ...others, [header]: bad } })).toEqual(wrong);
      expect(await send(sender, { ...sent, headers: others })).toEqual(wrong);
      expect(await send(sender, sent)).toMatchObject([200, { accepted: true }]);
    },
  );

  it.each([-301, 301])("401 for a signed time that is %i seconds from this server's clock", async (away) => {
    const at = Math.floor(Date.now() / 1000) + away + Math.sign(away);
    const late = refused(401, "The signed time is more than 5 minutes from this server's clock");
    expect(await send("stripe", fromStripe(secrets["stripe"]!, paid("cus_late"), at))).toEqual(late);
    expect(await send("slack", fromSlack(secrets["slack"]!, mention("late"), at))).toEqual(late);
    expect(await send("standard", fromStandard(secrets["standard"]!, signedUp("late"), { at }))).toEqual(late);
  });

  it("401 where the signed time was replaced by a present one", async () => {
    const at = Math.floor(Date.now() / 1000);
    const old = fromSlack(secrets["slack"]!, mention("replayed"), at - 4000);
    const headers = { ...old.headers, "x-slack-request-timestamp": `${at}` };
    expect(await send("slack", { ...old, headers })).toEqual(wrong);
  });

  it("404 for an unknown agent and an unknown sender, also one with a name that no sender can have", async () => {
    const sent = fromStripe(secrets["stripe"]!, paid("cus_404"));
    expect(await send("stripe", sent, "missing")).toEqual(refused(404, "Agent not found"));
    for (const sender of ["missing", "..%2Fhelper", "%00", "constructor", "s".repeat(600)])
      expect(await send(sender, sent)).toEqual(refused(404, "Sender not found"));
  });

  it("415 for a form, except of GitHub, and for other media types; 413 for more than 4 MiB", async () => {
    const { headers, body } = fromStripe(secrets["stripe"]!, paid("cus_415"));
    const form = { ...headers, "content-type": "application/x-www-form-urlencoded" };
    expect(await send("stripe", { headers: form, body })).toEqual(refused(415, "Unsupported media type"));
    expect(await send("stripe", { headers: { ...headers, "content-type": "text/plain" }, body })).toEqual(
      refused(415, "Unsupported media type"),
    );
    const long = fromStripe(secrets["stripe"]!, { ...paid("cus_413"), more: "x".repeat(4 * 1024 * 1024) });
    expect(await send("stripe", long)).toEqual(refused(413, "Request body too large"));
  });

  it("400 for a body that is no JSON object, is nested too deeply, or is no UTF-8, which only a sender with the secret learns", async () => {
    const deep = `{"a":${"[".repeat(600)}${"]".repeat(600)}}`;
    for (const [text, error] of [
      ["[]", "Invalid request body"],
      ['"x"', "Invalid request body"],
      [deep, "Invalid request body"],
      ["{", "Invalid JSON"],
      ["", "Invalid JSON"],
    ] as const) {
      const answer = await send("stripe", fromStripe(secrets["stripe"]!, text));
      expect([answer[0], answer[1].error]).toEqual([400, error]);
      expect(await send("stripe", fromStripe("wrong", text))).toEqual(wrong);
    }
    expect(await send("github", await signedForm("other=1"))).toEqual(refused(400, "Invalid JSON"));
  });
});

describe("a repeated delivery", () => {
  it("gets the answer of the first, and is not worked on again: of every kind, at once or later, and signed anew", async () => {
    const count = (prompt: string) => played().filter((each) => each === prompt).length;
    const twice = async (sender: string, sent: SentNotification, again = sent) => {
      const answers = await Promise.all([send(sender, sent), send(sender, again)]);
      expect(answers.map(([status]) => status)).toEqual([200, 200]);
      return send(sender, again);
    };
    const now = Math.floor(Date.now() / 1000);
    const first = await fromGithub(secrets["github"]!, "pull_request", pull("Twice"));
    // GitHub does not sign the delivery's id.
    const renamed = { ...first, headers: { ...first.headers, "x-github-delivery": "another" } };
    expect(await twice("github", first, renamed)).toEqual(repeated("review"));
    const [stripe, slack] = [paid("evt_twice"), mention("twice")];
    expect(
      await twice("stripe", fromStripe(secrets["stripe"]!, stripe), fromStripe(secrets["stripe"]!, stripe, now + 1)),
    ).toEqual(repeated("paid"));
    expect(await twice("slack", fromSlack(secrets["slack"]!, slack), fromSlack(secrets["slack"]!, slack, now + 1))).toEqual(
      repeated("mention"),
    );
    const standard = (at: number) => fromStandard(secrets["standard"]!, signedUp("twice@example.org"), { id: "msg_twice", at });
    expect(await twice("standard", standard(now), standard(now + 1))).toEqual(repeated("signed-up"));
    await send("stripe", fromStripe(secrets["stripe"]!, paid("evt_after")));
    await expect.poll(() => count("evt_after paid 700")).toBe(1);
    for (const prompt of [
      "Review Twice of ada/tea by github",
      "evt_twice paid 700",
      "U1 says twice",
      "user.created twice@example.org",
    ])
      await expect.poll(() => count(prompt)).toBe(1);
  });

  it("of another sender of the agent is another delivery", async () => {
    const secret = "whsec_of_stripe";
    await service.manage("PUT", "helper/webhooks/senders/stripe-test", {
      kind: "stripe",
      events: { "invoice.paid": "paid" },
      secret,
    });
    const sent = fromStripe(secret, paid("evt_of_two"));
    expect(await send("stripe", sent)).toEqual(accepted("paid"));
    expect(await send("stripe-test", sent)).toEqual(accepted("paid"));
  });
});

it("a paused endpoint refuses notifications, and answers Slack's question", async () => {
  await service.manage("PATCH", "helper/webhooks", { enabled: false });
  const sent = fromStripe(secrets["stripe"]!, paid("evt_paused"));
  expect(await send("stripe", sent)).toEqual(refused(404, "Webhook not enabled for this agent"));
  expect(await send("slack", fromSlack(secrets["slack"]!, { type: "url_verification", challenge: "c" }))).toEqual([
    200,
    { challenge: "c" },
  ]);
  await service.manage("PATCH", "helper/webhooks", { enabled: true });
  expect(await send("stripe", sent)).toEqual(accepted("paid"));
});
