import { loadConfig, Secret } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TRIGGER_BYTES, triggerAgent, triggerConfig } from "../../../playground/trigger-agent.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";
import { CUT, empty, hangUp, html, json, never, redirect, stream } from "../../harness/upstream-answers.ts";

const SECRET = "whs_the-secret-of-the-agent";
const accepted = json(200, { accepted: true, agentId: "helper", event: "a.b" });

describe("triggering an agent", () => {
  let service: FakeUpstream;
  beforeEach(async () => {
    service = await startFakeUpstream();
  });
  afterEach(() => service.close());

  const trigger = ({ event = "a.b", payload = { notification: {} } as { notification: object; title?: unknown } } = {}) => ({
    with: (more: { url?: string; answerWithinMs?: number; signal?: AbortSignal } = {}) =>
      triggerAgent(
        {
          url: more.url ?? new URL("/api/webhook/helper", service.baseUrl).href,
          secret: new Secret(SECRET),
          events: ["a.b", "c"],
          answerWithinMs: more.answerWithinMs ?? 20_000,
        },
        { event, payload },
        more.signal ?? new AbortController().signal,
      ),
  });
  const told = async (answer: Answer, more: Parameters<ReturnType<typeof trigger>["with"]>[0] = {}) => {
    service.answerNext(answer);
    const response = await trigger().with(more);
    const text = await response.text();
    expect(text).not.toContain(SECRET);
    return { status: response.status, text };
  };

  it("posts event and payload as JSON, and nothing else, with the secret as a bearer (4.4)", async () => {
    service.answerNext(accepted);
    const payload = { title: "One", missing: undefined, notification: { deep: { list: [1] } } };
    const response = await trigger({ event: "c", payload }).with();
    expect([response.status, await response.json()]).toEqual([200, { accepted: true, event: "c" }]);
    const request = await service.request();
    expect([request.method, request.url]).toEqual(["POST", "/api/webhook/helper"]);
    expect(request.headers).toMatchObject({ authorization: `Bearer ${SECRET}`, "content-type": "application/json" });
    expect(await request.json()).toEqual({ event: "c", payload: { title: "One", notification: { deep: { list: [1] } } } });
  });

  it("does not send what the agent has no event for", async () => {
    expect((await trigger({ event: "b" }).with()).status).toBe(204);
    expect(service.requests).toEqual([]);
  });

  it.each([500, 502, 503, 429])("a trigger that answers %i is for later: 503", async (status) => {
    expect((await told(json(status, { error: SECRET }))).status).toBe(503);
  });

  it.each([400, 401, 403, 404, 413, 415])(
    "a trigger that answers %i is for somebody to mend: 502, with that number",
    async (status) => {
      expect(await told(json(status, { error: SECRET }))).toEqual({
        status: 502,
        text: `The agent's trigger did not accept the event (${status})`,
      });
    },
  );

  it("any refusal is reported as a refusal", async () => {
    expect((await told(json(409, { accepted: true }))).status).toBe(502);
  });

  it("does not follow a redirect: the secret is for the configured address", async () => {
    expect((await told(redirect("/elsewhere"))).status).toBe(502);
    expect(service.requests).toHaveLength(1);
  });

  it.each<[string, Answer]>([
    ["a page", html(200)],
    ["nothing", empty(204)],
    ["other JSON", json(200, { accepted: false })],
  ])("a good status with %s is no trigger's: 502", async (_what, answer) => {
    expect((await told(answer)).status).toBe(502);
  });

  it.each<[string, Answer]>([
    ["hangs up", hangUp()],
    ["ends its answer early", stream(['{"accepted":', CUT])],
  ])("a trigger that %s may have accepted: 503", async (_what, answer) => {
    expect((await told(answer)).status).toBe(503);
  });

  it("no listener at the address: 503", async () => {
    const gone = await startFakeUpstream();
    await gone.close();
    expect((await trigger().with({ url: gone.baseUrl })).status).toBe(503);
  });

  it("a trigger that is silent for too long: 503, and the call ends", async () => {
    expect((await told(never(), { answerWithinMs: 1 })).status).toBe(503);
    await service.deserted();
  });

  it("the signal ends the call", async () => {
    const left = new AbortController();
    const answer = told(never(), { signal: left.signal });
    const request = await service.request();
    left.abort();
    expect((await answer).status).toBe(503);
    expect(await request.outcome).toBe("aborted");
  });

  it("leaves the whole notification out where the body would be longer than the trigger takes", async () => {
    service.answerAll(accepted);
    const frame = JSON.stringify({ event: "a.b", payload: { title: "é", notification: { text: "" } } });
    const text = "x".repeat(TRIGGER_BYTES - Buffer.byteLength(frame));
    await trigger({ payload: { title: "é", notification: { text } } }).with();
    await trigger({ payload: { title: "é", notification: { text: `${text}x` } } }).with();
    expect((await (await service.request(1)).bytes()).length).toBe(TRIGGER_BYTES);
    expect(await (await service.request(2)).json()).toEqual({ event: "a.b", payload: { title: "é" } });
  });
});

describe("the trigger's configuration", () => {
  const env = { AGENT_TRIGGER_URL: "http://127.0.0.1:1/api/webhook/a", AGENT_WEBHOOK_SECRET: SECRET, AGENT_EVENTS: '["a"]' };

  it("is read from the environment", () => {
    const { value } = loadConfig(triggerConfig, { env });
    expect(value).toMatchObject({ url: env.AGENT_TRIGGER_URL, events: ["a"], answerWithinMs: 8000 });
    expect(value.secret.reveal()).toBe(SECRET);
  });

  it.each(["", ".a", "a b", "a/b", "é", "a".repeat(129)])("takes no event that an agent cannot have (%j)", (name) => {
    const events = JSON.stringify(["a".repeat(128), "1.b_c-D", name]);
    expect(() => loadConfig(triggerConfig, { env: { ...env, AGENT_EVENTS: events } })).toThrow(
      /^events\.2: expected the name of an event/,
    );
  });
});
