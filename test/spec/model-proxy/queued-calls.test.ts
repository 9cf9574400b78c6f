import { setImmediate } from "node:timers/promises";
import { createManualClock } from "@portico/adapters/clock/manual";
import { describe, expect, it } from "vitest";
import { CALLERS, expectError } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate, type Gate } from "../../harness/gate.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { after, events, json } from "../../harness/upstream-answers.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";

const { path, request } = CALLERS.messages;
const OK = {
  id: "m",
  type: "message",
  role: "assistant",
  model: "echo-large",
  content: [{ type: "text", text: "ok" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 1, output_tokens: 1 },
};

describe.each(["node", "fetch"] as const)("a provider with concurrency on a %s host", (host) => {
  it("sends no more calls at once than its limit, and the others in the order of their arrival", async () => {
    await using upstream = await startFakeUpstream();
    const gates = gated(upstream, 4);
    await using proxy = await started(upstream, { limit: 1, queue: 10, waitMs: 60_000 }, host);
    const texts = ["one", "two", "three", "four"];
    const answers: Promise<{ status: number }>[] = [];
    for (const text of texts) {
      answers.push(proxy.post(path, request(text)));
      if (text === "one") await upstream.request();
      // The next call arrives after this one waits.
      for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    }
    for (const [index, gate] of gates.entries()) {
      await upstream.request(index + 1);
      expect(upstream.requests).toHaveLength(index + 1);
      gate.open();
      expect((await answers[index]!).status).toBe(200);
    }
    const sent = await Promise.all(upstream.requests.map((each) => each.text()));
    expect(sent.map((body) => texts.find((text) => body.includes(text)))).toEqual(texts);
  });

  it.each(["messages", "chat-completions"] as const)(
    "answers a call of %s with 429 when the queue is full, says that it is its own limit, and when to come back",
    async (caller) => {
      await using upstream = await startFakeUpstream();
      const [gate] = gated(upstream, 1);
      await using proxy = await started(upstream, { limit: 1, queue: 0, waitMs: 60_000 }, host);
      const first = proxy.post(path, request("hello"));
      await upstream.request();
      const entry = CALLERS[caller];
      const reply = await proxy.post(entry.path, entry.request("hello"));
      expect(reply.headers["retry-after"]).toBe("1");
      const { message } = await expectError(reply, 429, caller);
      expect(message).toBe(`Portico's own limit for provider "main": 1 calls are in progress, and 0 wait`);
      gate!.open();
      expect((await first).status).toBe(200);
      expect((await proxy.post(path, request("hello"))).status).toBe(200);
    },
  );

  it("answers a call with a large body with 429 when the queue is full", async () => {
    await using upstream = await startFakeUpstream();
    const [gate] = gated(upstream, 1);
    await using proxy = await started(upstream, { limit: 1, queue: 0, waitMs: 60_000 }, host);
    const first = proxy.post(path, request("hello"));
    await upstream.request();
    const long = { ...request("hello"), metadata: { user_id: "x".repeat(4 * 1024 * 1024) } };
    expect((await proxy.post(path, long)).status).toBe(429);
    gate!.open();
    expect((await first).status).toBe(200);
  });

  it("answers a call with 429 that waited for waitMs", async () => {
    await using upstream = await startFakeUpstream();
    const [gate] = gated(upstream, 1);
    const clock = createManualClock();
    await using proxy = await started(upstream, { limit: 1, queue: 5, waitMs: 2_000 }, host, clock);
    const first = proxy.post(path, request("hello"));
    await upstream.request();
    const second = proxy.post(path, request("hello"));
    while (clock.untilNext() !== 2_000) await setImmediate();
    await clock.advance(2_001);
    const { message } = await expectError(await second, 429, "messages");
    expect(message).toMatch(/^Portico's own limit for provider "main": the call waited 2000 ms/);
    gate!.open();
    expect((await first).status).toBe(200);
  });

  it("a caller who leaves the queue frees its place there", async () => {
    await using upstream = await startFakeUpstream();
    const [gate] = gated(upstream, 1);
    await using proxy = await started(upstream, { limit: 1, queue: 1, waitMs: 60_000 }, host);
    const first = proxy.post(path, request("first"));
    await upstream.request();
    const caller = new AbortController();
    const headers = { "content-type": "application/json", "x-api-key": await proxy.token() };
    const leaving = proxy
      .call({ path, headers, body: JSON.stringify(request("leaving")), signal: caller.signal })
      .catch(() => undefined);
    // The queue is full as soon as the second call waits.
    const probe = async () => (await proxy.post(path, request("probe"))).status;
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    expect(await probe()).toBe(429);
    caller.abort();
    await leaving;
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    const third = proxy.post(path, request("third"));
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    gate!.open();
    expect((await first).status).toBe(200);
    expect((await third).status).toBe(200);
    const sent = await Promise.all(upstream.requests.map((each) => each.text()));
    expect(sent.some((body) => body.includes("leaving"))).toBe(false);
  });

  it("a call counts until its answer has ended, and no longer than its reader stays", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerNext(events([...messagesEvents("one two").slice(0, 4), new Promise(() => {})]));
    await using proxy = await started(upstream, { limit: 1, queue: 1, waitMs: 60_000 }, host);
    const reply = await proxy.post(path, request("hello", { stream: true }));
    await reply.read();
    const next = proxy.post(path, request("next"));
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    expect(upstream.requests).toHaveLength(1);
    reply.leave();
    expect((await next).status).toBe(200);
  });

  it("a call that fails gives its place to the next", async () => {
    await using upstream = await startFakeUpstream();
    await using proxy = await started(upstream, { limit: 1, queue: 0, waitMs: 60_000 }, host);
    for (let round = 0; round < 3; round += 1) {
      upstream.answerNext(({ socket }) => void socket.destroy(), json(500, {}));
      expect((await proxy.post(path, request("hello"))).status).toBe(502);
      expect((await proxy.post(path, request("hello"))).status).toBe(500);
      const streamed = await proxy.post(path, request("hello", { stream: true }));
      await streamed.text();
      expect(streamed.status).toBe(200);
    }
  });
});

function started(
  upstream: FakeUpstream,
  concurrency: { readonly limit: number; readonly queue: number; readonly waitMs: number },
  host: "node" | "fetch",
  clock?: ReturnType<typeof createManualClock>,
) {
  return startProxy({ host, providers: [{ protocol: "messages", upstream, concurrency }], ...(clock && { clock }) });
}

/** Answers that each wait for their gate. */
function gated(upstream: FakeUpstream, count: number): readonly Gate[] {
  const gates = Array.from({ length: count }, createGate);
  upstream.answerNext(...gates.map(({ opened }): Answer => after(opened, json(200, OK))));
  return gates;
}
