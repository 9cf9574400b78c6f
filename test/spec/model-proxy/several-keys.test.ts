import { createManualClock } from "@portico/adapters/clock/manual";
import { createLive, Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { CALLERS, expectError } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { json } from "../../harness/upstream-answers.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";

const { path, request } = CALLERS.messages;
const KEYS = ["sk-first-key-of-three", "sk-second-key-of-three", "sk-third-key-of-three"];

describe("several keys of a provider", () => {
  it("are used in turn", async () => {
    const { upstream, proxy } = await started();
    for (let call = 0; call < 4; call += 1) expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect(keysOf(upstream)).toEqual([KEYS[0], KEYS[1], KEYS[2], KEYS[0]]);
    await ended({ proxy, upstream });
  });

  it.each([401, 402, 403, 429])(
    "a key that is answered %s rests, and the call is sent again with the next key",
    async (status) => {
      const { upstream, proxy } = await started();
      upstream.answerNext(refusal(status));
      expect((await proxy.post(path, request("hello"))).status).toBe(200);
      expect((await proxy.post(path, request("hello"))).status).toBe(200);
      expect((await proxy.post(path, request("hello"))).status).toBe(200);
      expect(keysOf(upstream)).toEqual([KEYS[0], KEYS[1], KEYS[2], KEYS[1]]);
      await ended({ proxy, upstream });
    },
  );

  it.each([400, 404, 500, 529])("an answer of status %s says nothing about the key", async (status) => {
    const { upstream, proxy } = await started();
    upstream.answerNext(refusal(status));
    expect((await proxy.post(path, request("hello"))).status).toBe(status);
    expect(upstream.requests).toHaveLength(1);
    await ended({ proxy, upstream });
  });

  it("a limited key rests for retry-after, and a longer rest is never made shorter", async () => {
    const clock = createManualClock();
    const { upstream, proxy } = await started({ clock, keys: KEYS.slice(0, 1) });
    upstream.answerNext(refusal(429, { "retry-after": "120" }));
    expect((await proxy.post(path, request("hello"))).status).toBe(429);
    await clock.advance(119_000);
    const error = await expectError(await proxy.post(path, request("hello")), 429, "messages");
    expect(error.type).toBe("rate_limit_error");
    await clock.advance(2_000);
    expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
    await ended({ proxy, upstream });
  });

  it("a limited key without retry-after rests for keyRestMs", async () => {
    const clock = createManualClock();
    const { upstream, proxy } = await started({ clock, keys: KEYS.slice(0, 1), keyRestMs: 5_000 });
    upstream.answerNext(refusal(429));
    expect((await proxy.post(path, request("hello"))).status).toBe(429);
    await clock.advance(4_000);
    expect((await proxy.post(path, request("hello"))).status).toBe(429);
    await clock.advance(1_500);
    expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
    await ended({ proxy, upstream });
  });

  it.each(["messages", "chat-completions"] as const)(
    "when all keys rest, a caller of %s gets 429 with the time to the first key's return, and the upstream gets no call",
    async (caller) => {
      const clock = createManualClock();
      const { upstream, proxy } = await started({ clock });
      const entry = CALLERS[caller];
      upstream.answerNext(...[30, 20, 40].map((seconds) => refusal(429, { "retry-after": String(seconds) })));
      expect((await proxy.post(entry.path, entry.request("hello"))).status, "the last answer of the vendor").toBe(429);
      const reply = await proxy.post(entry.path, entry.request("hello"));
      expect(reply.headers["retry-after"]).toBe("20");
      const { message } = await expectError(reply, 429, caller);
      expect(message).toMatch(/Portico's provider "main" has no key left/);
      expect(upstream.requests).toHaveLength(3);
      await ended({ proxy, upstream });
    },
  );

  it("when the vendor refused all keys, each call tries one of them, and its caller gets the refusal", async () => {
    const { upstream, proxy } = await started();
    upstream.answerAll(refusal(401));
    expect((await proxy.post(path, request("hello"))).status).toBe(401);
    expect(upstream.requests).toHaveLength(3);
    expect((await proxy.post(path, request("hello"))).status).toBe(401);
    expect(upstream.requests).toHaveLength(4);
    await ended({ proxy, upstream });
  });

  it("a call whose body is streamed is not sent again, and its key rests", async () => {
    const { upstream, proxy } = await started();
    upstream.answerNext(refusal(429));
    const long = { ...request("hello"), metadata: { user_id: "x".repeat(2 * 1024 * 1024) } };
    expect((await proxy.post(path, long)).status).toBe(429);
    expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect(keysOf(upstream)).toEqual([KEYS[0], KEYS[1]]);
    await ended({ proxy, upstream });
  });

  it("no key of them appears in an answer or a log line", async () => {
    const { upstream, proxy } = await started();
    upstream.answerAll(json(401, { type: "error", error: { type: "authentication_error", message: `bad: ${KEYS.join()}` } }));
    expect(await (await proxy.post(path, request("hello"))).text()).toMatch(/bad: \*\*\*,\*\*\*,\*\*\*/);
    const lines = JSON.stringify(proxy.telemetry.lines);
    expect(lines).toContain("A key of a provider rests");
    for (const key of KEYS) expect(lines).not.toContain(key);
    await ended({ proxy, upstream });
  });

  it("after a rotation, new keys begin awake, and kept keys keep their rest", async () => {
    const rotation = createLive<{ readonly keys?: readonly Secret[] } | undefined>(undefined);
    const { upstream, proxy } = await started({ keys: KEYS.slice(0, 2), rotation });
    upstream.answerNext(refusal(429), refusal(429));
    expect((await proxy.post(path, request("hello"))).status).toBe(429);
    await rotation.replace({ keys: [new Secret(KEYS[0]!), new Secret(KEYS[2]!)] });
    expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect(keysOf(upstream)).toEqual([KEYS[0], KEYS[1], KEYS[2], KEYS[2]]);
    await ended({ proxy, upstream });
  });
});

async function started({ clock, ...setting }: StartOptions = {}) {
  const upstream = await startFakeUpstream();
  const providers = [{ protocol: "messages" as const, upstream, keys: KEYS, ...setting }];
  return { upstream, proxy: await startProxy({ providers, ...(clock && { clock }) }) };
}

type Setting = Extract<Parameters<typeof startProxy>[0]["providers"][number], { readonly upstream: unknown }>;
type StartOptions = Pick<Setting, "keys" | "keyRestMs" | "rotation"> & { readonly clock?: ReturnType<typeof createManualClock> };

async function ended({ proxy, upstream }: Awaited<ReturnType<typeof started>>): Promise<void> {
  await proxy.close();
  await upstream.close();
}

function refusal(status: number, headers: Record<string, string> = {}): Answer {
  return json(status, { type: "error", error: { type: "api_error", message: "refused" } }, headers);
}

function keysOf({ requests }: FakeUpstream): unknown[] {
  return requests.map(({ headers }) => headers["x-api-key"]);
}
