import { setImmediate } from "node:timers/promises";
import { createManualClock } from "@portico/adapters/clock/manual";
import { describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { CUT, events, hangUp, json } from "../../harness/upstream-answers.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";

const { path, request } = CALLERS.messages;
const RETRY = { attempts: 3, waitMs: 500, maxWaitMs: 30_000 };

describe("a provider with retry", () => {
  it.each([408, 429, 500, 502, 503, 504, 529])("sends a call again after status %s", async (status) => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(status));
    await using at = await started(upstream);
    const reply = await at.driven(at.proxy.post(path, request("hello")));
    expect(reply.status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
    expect(await upstream.requests[1]!.text()).toBe(await upstream.requests[0]!.text());
  });

  it.each([400, 401, 403, 404, 409, 413, 422, 501, 508])("sends a call once after status %s", async (status) => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(status));
    await using at = await started(upstream);
    expect((await at.driven(at.proxy.post(path, request("hello")))).status).toBe(status);
    expect(upstream.requests).toHaveLength(1);
  });

  it("sends a call again after a connection that ended before an answer", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(hangUp());
    await using at = await started(upstream);
    expect((await at.driven(at.proxy.post(path, request("hello")))).status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
  });

  it("gives the caller the last answer after all attempts", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(503), refusal(503), refusal(529));
    await using at = await started(upstream);
    expect((await at.driven(at.proxy.post(path, request("hello")))).status).toBe(529);
    expect(upstream.requests).toHaveLength(3);
    const lines = at.proxy.telemetry.lines.filter(({ message }) => message === "A model call is sent again");
    expect(lines.map(({ fields }) => [fields["attempt"], fields["status"]])).toEqual([
      [2, 503],
      [3, 503],
    ]);
  });

  it("waits as long as retry-after asks, and no shorter", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(429, { "retry-after": "20" }));
    await using at = await started(upstream);
    const answering = at.proxy.post(path, request("hello"));
    await (
      await upstream.request()
    ).outcome;
    await at.waiting();
    await at.clock.advance(19_900);
    expect(upstream.requests).toHaveLength(1);
    await at.clock.advance(2_000);
    expect((await answering).status).toBe(200);
  });

  it("waits as long as Google asks within its error (googleapis/python-genai#1875, dcdpr/jp#1061)", async () => {
    await using upstream = await startFakeUpstream();
    const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "20.5s" }];
    upstream.answerNext(json(429, [{ error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "Quota", details } }]));
    await using at = await started(upstream);
    const answering = at.proxy.post(path, request("hello"));
    await (
      await upstream.request()
    ).outcome;
    await at.waiting();
    await at.clock.advance(20_400);
    expect(upstream.requests).toHaveLength(1);
    await at.clock.advance(2_500);
    expect((await answering).status).toBe(200);
  });

  it("gives the answer to the caller at once if retry-after asks for more than maxWaitMs", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(429, { "retry-after": "31" }));
    await using at = await started(upstream);
    const reply = await at.proxy.post(path, request("hello"));
    expect([reply.status, reply.headers["retry-after"]]).toEqual([429, "31"]);
    expect(upstream.requests).toHaveLength(1);
  });

  it("sends a call once if the vendor says that a retry is in vain", async () => {
    await using upstream = await startFakeUpstream();
    const spent = json(429, {
      error: { message: "You exceeded your current quota", type: "insufficient_quota", code: "insufficient_quota" },
    });
    upstream.answerNext(spent, refusal(429, { "x-should-retry": "false" }));
    await using at = await started(upstream);
    expect((await at.proxy.post(path, request("hello"))).status).toBe(429);
    expect((await at.proxy.post(path, request("hello"))).status).toBe(429);
    expect(upstream.requests).toHaveLength(2);
  });

  it("stops at the first byte: a stream that breaks is not sent again", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(events([...messagesEvents("one two").slice(0, 3), CUT]));
    await using at = await started(upstream);
    const reply = await at.proxy.post(path, request("hello", { stream: true }));
    CALLERS.messages.assertBrokenStream(await reply.text());
    expect(upstream.requests).toHaveLength(1);
  });

  it("sends a call with a streamed body once", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(503));
    await using at = await started(upstream);
    const long = { ...request("hello"), metadata: { user_id: "x".repeat(2 * 1024 * 1024) } };
    expect((await at.proxy.post(path, long)).status).toBe(503);
    expect(upstream.requests).toHaveLength(1);
  });

  it("sends no call again whose caller left during the wait", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(503));
    await using at = await started(upstream);
    const caller = new AbortController();
    const headers = { "content-type": "application/json", "x-api-key": await at.proxy.token() };
    const body = JSON.stringify(request("hello"));
    const answering = at.proxy.call({ path, headers, body, signal: caller.signal }).catch(() => undefined);
    await (
      await upstream.request()
    ).outcome;
    await at.waiting();
    caller.abort();
    await answering;
    for (let turn = 0; turn < 1_000 && at.clock.untilNext() !== undefined; turn += 1) await setImmediate();
    await at.clock.advance(60_000);
    expect(upstream.requests).toHaveLength(1);
  });

  it("waits for the first key that returns, when all of its keys rest", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(refusal(429, { "retry-after": "10" }), refusal(429, { "retry-after": "5" }));
    await using at = await started(upstream, { keys: ["sk-first-key-of-two", "sk-second-key-of-two"] });
    expect((await at.driven(at.proxy.post(path, request("hello")))).status).toBe(200);
    expect(upstream.requests.map(({ headers }) => headers["x-api-key"])).toEqual([
      "sk-first-key-of-two",
      "sk-second-key-of-two",
      "sk-second-key-of-two",
    ]);
  });
});

it("a provider without retry sends each call once", async () => {
  await using upstream = await startFakeUpstream();
  upstream.answerNext(refusal(503), hangUp());
  await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream }] });
  expect((await proxy.post(path, request("hello"))).status).toBe(503);
  expect((await proxy.post(path, request("hello"))).status).toBe(502);
  expect(upstream.requests).toHaveLength(2);
});

async function started(upstream: Awaited<ReturnType<typeof startFakeUpstream>>, { keys }: { readonly keys?: string[] } = {}) {
  const clock = createManualClock();
  const proxy = await startProxy({
    clock,
    providers: [{ protocol: "messages", upstream, retry: RETRY, ...(keys && { keys }) }],
  });
  return {
    clock,
    proxy,
    /** Lets time pass until the call is answered. */
    async driven<T>(work: Promise<T>): Promise<T> {
      let isOver = false;
      const over = work.finally(() => (isOver = true));
      while (!isOver) {
        await setImmediate();
        await clock.advance(100);
      }
      return over;
    },
    /** Resolves once a call waits for its next attempt. */
    async waiting(): Promise<void> {
      while (!proxy.telemetry.lines.some(({ message }) => message === "A model call is sent again")) await setImmediate();
    },
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}

function refusal(status: number, headers: Record<string, string> = {}): Answer {
  return json(status, { type: "error", error: { type: "api_error", message: "refused" } }, headers);
}
