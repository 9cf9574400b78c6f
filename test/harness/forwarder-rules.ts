import { afterEach, beforeEach, expect, it } from "vitest";
import type { Listening } from "../../playground/listen.ts";
import { TRIGGER_BYTES } from "../../playground/trigger-agent.ts";
import { type FakeUpstream, startFakeUpstream } from "./fake-upstream.ts";
import { httpCall } from "./http-call.ts";
import { json, never } from "./upstream-answers.ts";

const SECRET = "whsec_the-secret-of-the-third-party";
const AGENT_SECRET = "whs_the-secret-of-the-agent";

/** A third party: what it sends, as its own library signs it. */
export interface ThirdParty {
  start(env: Record<string, string>): Promise<Listening>;
  readonly path: string;
  readonly event: string;
  /** A body for `event`, with this text somewhere within. */
  body(text: string): string;
  headers(body: string, secret: string): Promise<Record<string, string>>;
  readonly signatureHeader: string;
  /** What the mapping takes out of the body. */
  readonly fields: object;
  /** A notification of another event. */
  readonly other: object;
}

/** The rules of a forwarder: a test of each. Called in a `describe`. */
export function testForwarder(third: ThirdParty): void {
  let service: FakeUpstream;
  let forwarder: Listening;
  beforeEach(async () => {
    service = await startFakeUpstream();
    service.answerAll(json(200, { accepted: true, agentId: "helper", event: third.event }));
    forwarder = await third.start({
      AGENT_TRIGGER_URL: new URL("/api/webhook/helper", service.baseUrl).href,
      AGENT_WEBHOOK_SECRET: AGENT_SECRET,
      AGENT_EVENTS: JSON.stringify([third.event]),
      GITHUB_WEBHOOK_SECRET: SECRET,
      STRIPE_WEBHOOK_SECRET: SECRET,
    });
  });
  afterEach(async () => {
    await forwarder[Symbol.asyncDispose]();
    await service.close();
  });

  const post = async (body: string, headers: Record<string, string>, signal: AbortSignal | null = null) =>
    fetch(forwarder.url + third.path, { method: "POST", headers, body, signal });
  const deliver = async (body = third.body("é")) => post(body, await third.headers(body, SECRET));

  it("forwards what is signed, under its event, whole", async () => {
    const body = third.body("é \u{1f375} </script>");
    const answer = await deliver(body);
    expect([answer.status, await answer.json()]).toEqual([200, { accepted: true, event: third.event }]);
    const request = await service.request();
    expect(request.url).toBe("/api/webhook/helper");
    expect(request.headers.authorization).toBe(`Bearer ${AGENT_SECRET}`);
    const sent = (await request.json()) as { event: string; payload: { notification: unknown } };
    expect(Object.keys(sent)).toEqual(["event", "payload"]);
    expect(sent.event).toBe(third.event);
    expect(sent.payload.notification).toEqual(JSON.parse(body));
  });

  it("lets nothing through that another secret signed, or that was changed afterwards: 401", async () => {
    const body = third.body("one");
    const answers = [
      await post(body, await third.headers(body, "whsec_another")),
      await post(body.replace("one", "two"), await third.headers(body, SECRET)),
      await post(` ${body}`, await third.headers(body, SECRET)),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(401);
      expect(await answer.text()).not.toMatch(/whsec_|one|two/);
    }
    expect(service.requests).toEqual([]);
  });

  it.each(["missing", "empty", "nonsense"])("a %s signature is 401", async (kind) => {
    const body = third.body("one");
    const { [third.signatureHeader]: _, ...headers } = await third.headers(body, SECRET);
    if (kind !== "missing") headers[third.signatureHeader] = kind === "empty" ? "" : "nonsense";
    expect((await post(body, headers)).status).toBe(401);
    expect(service.requests).toEqual([]);
  });

  it("no body is 401: there is nothing that a signature could be of", async () => {
    expect((await post("", await third.headers(third.body(""), SECRET))).status).toBe(401);
  });

  it.each(["payload=%7B%7D", "null", '"text"', "{"])("signed, but no notification: 400 (%s)", async (body) => {
    const answer = await deliver(body);
    expect(answer.status).toBe(400);
    expect(service.requests).toEqual([]);
  });

  it("a body of 1 MiB is taken, and its own fields go where all of it does not fit", async () => {
    const body = third.body("x".repeat(TRIGGER_BYTES - Buffer.byteLength(third.body(""))));
    expect((await deliver(body)).status).toBe(200);
    const { payload } = (await (await service.request()).json()) as { payload: Record<string, unknown> };
    expect(payload).toMatchObject(third.fields);
    expect(payload).not.toHaveProperty("notification");
  });

  it.each(["declared", "chunked"])("a longer body is 413 (%s)", async (kind) => {
    const body = third.body("x".repeat(TRIGGER_BYTES + 1 - Buffer.byteLength(third.body(""))));
    const headers = await third.headers(body, SECRET);
    const pieces = (async function* () {
      yield body.slice(0, 1000);
      yield body.slice(1000);
    })();
    const answer = await httpCall(forwarder.url, { path: third.path, headers, body: kind === "declared" ? body : pieces });
    expect(answer.status).toBe(413);
    expect(service.requests).toEqual([]);
  });

  it("tells the third party the result, and nothing of the agent's words or secrets", async () => {
    for (const [status, told] of [
      [401, 502],
      [404, 502],
      [500, 503],
      [429, 503],
    ] as const) {
      service.answerNext(json(status, { error: AGENT_SECRET }));
      const answer = await deliver();
      expect(answer.status, `the trigger answers ${status}`).toBe(told);
      expect(await answer.text()).not.toMatch(/whs/);
    }
    await service.close();
    expect((await deliver()).status).toBe(503);
  });

  it("answers 204 to notifications that the agent has no event for", async () => {
    const answer = await deliver(JSON.stringify(third.other));
    expect(answer.status).toBe(204);
    expect(service.requests).toEqual([]);
  });

  it("gives up the trigger when the third party leaves: it counts that as failed, and delivers again", async () => {
    service.answerNext(never());
    const left = new AbortController();
    const body = third.body("one");
    const answer = post(body, await third.headers(body, SECRET), left.signal);
    const request = await service.request();
    left.abort();
    await expect(answer).rejects.toThrow();
    expect(await request.outcome).toBe("aborted");
  });

  it("does not start without a secret to verify with", async () => {
    await expect(async () => third.start({ AGENT_EVENTS: "[]" })).rejects.toThrow(/^secret: expected/m);
  });
}
