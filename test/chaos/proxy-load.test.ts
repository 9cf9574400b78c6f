import { describe, expect, it } from "vitest";
import { CALLERS, COMBINATIONS, PROTOCOLS, type Protocol } from "../harness/callers.ts";
import { startFakeUpstream } from "../harness/fake-upstream.ts";
import type { Answer } from "../harness/upstream-exchange.ts";
import { httpCall } from "../harness/http-call.ts";
import { type ProxyProcess, startProxyProcess } from "../harness/proxy-process.ts";
import { chatEvents, messagesEvents } from "../harness/stream-scripts.ts";
import { events, json } from "../harness/upstream-answers.ts";

const MIB = 1024 * 1024;
const isLong = process.env.PORTICO_LONG === "1";
const LOAD = isLong ? { streams: 256, warmUpMs: 10_000, forMs: 30_000 } : { streams: 64, warmUpMs: 1_500, forMs: 3_000 };
/** Fifty pieces, as a real answer has. */
const TEXT = Array.from({ length: 50 }, (_, index) => `word${index}`).join(" ");

describe("the proxy under load", () => {
  it(
    `${LOAD.streams} streams at a time for ${LOAD.forMs / 1000} s: no error, no leak, no connection left upstream`,
    async () => {
      await using upstream = await startFakeUpstream({ keepBodies: false });
      upstream.answerAll(wordByWord);
      const proxy = await startProxyProcess(PROTOCOLS.map((protocol) => ({ id: protocol, protocol, upstream })));

      expect(await streamFor(LOAD.warmUpMs, proxy), "streams of the warm-up").toBeGreaterThanOrEqual(LOAD.streams);
      upstream.reset();
      upstream.answerAll(wordByWord);
      const before = await proxy.memory();
      expect(await streamFor(LOAD.forMs, proxy), "streams").toBeGreaterThan(LOAD.streams);
      const after = await proxy.memory();

      // Some two thousand streams even on a slow machine: a leak of one kilobyte per stream is visible.
      expect((after.heap - before.heap) / MIB, "heap growth in MiB").toBeLessThan(2);
      expect(upstream.openExchanges).toBe(0);
      expect(await outcomes(upstream.requests), "outcomes upstream").toEqual(["answered"]);
      expect(await proxy.close()).toBe(0);
      await upstream.deserted();
    },
    LOAD.warmUpMs + LOAD.forMs + 30_000,
  );

  it.each([
    ["its model first", ['{"model":"echo-large","x":"', '"}']],
    ["its model last", ['{"x":"', '","model":"echo-large"}']],
  ] as const)(
    "a body of 200 MiB with %s, while others call: every caller is served in under 600 MiB",
    async (_name, [head, tail]) => {
      await using upstream = await startFakeUpstream({ keepBodies: false });
      upstream.answerAll(async (exchange) => {
        await exchange.request.sha256();
        await json(200, { received: exchange.request.received })(exchange);
      });
      await using proxy = await startProxyProcess([{ id: "messages", protocol: "messages", upstream }]);
      const headers = { "content-type": "application/json", "x-api-key": proxy.tokens.messages ?? "" };
      const path = "/v1/messages";

      let isUploading = true;
      const large = httpCall(proxy.url, { path, headers, body: upload(head, 200, tail) }).finally(() => (isUploading = false));
      let small = 0;
      do {
        const reply = await httpCall(proxy.url, { path, headers, body: JSON.stringify(CALLERS.messages.request()) });
        expect(reply.status).toBe(200);
        await reply.bytes();
        small += 1;
      } while (isUploading);

      expect(await (await large).json()).toEqual({ received: 200 * MIB + head.length + tail.length });
      expect(small, "callers beside it").toBeGreaterThan(1);
      expect((await proxy.memory()).peakResident / MIB, "peak memory in MiB").toBeLessThan(600);
    },
  );
});

const wordByWord: Answer = (exchange) =>
  events(exchange.request.url === "/v1/messages" ? messagesEvents(TEXT) : chatEvents(TEXT))(exchange);

/** Keeps this many streams running for a while, of all four combinations. Every stream must be complete. Returns their number. */
async function streamFor(ms: number, proxy: ProxyProcess): Promise<number> {
  const until = Date.now() + ms;
  let count = 0;
  const caller = async (caller: Protocol, upstream: Protocol) => {
    const { path, request, assertStream } = CALLERS[caller];
    const headers = { "content-type": "application/json", "x-api-key": proxy.tokens[upstream] ?? "" };
    do {
      const reply = await httpCall(proxy.url, { path, headers, body: JSON.stringify(request("hello", { stream: true })) });
      const text = await reply.text();
      expect(reply.status, text).toBe(200);
      assertStream(text);
      expect(text).toContain("word49");
      count += 1;
    } while (Date.now() < until);
  };
  const callers = Array.from({ length: LOAD.streams }, (_, index) => COMBINATIONS[index % COMBINATIONS.length]);
  await Promise.all(callers.map((each) => each && caller(each.caller, each.upstream)));
  return count;
}

async function outcomes(requests: readonly { readonly outcome: Promise<string> }[]): Promise<string[]> {
  return [...new Set(await Promise.all(requests.map((request) => request.outcome)))];
}

async function* upload(head: string, mebibytes: number, tail: string): AsyncGenerator<string | Uint8Array> {
  yield head;
  const block = Buffer.alloc(MIB, "a");
  for (let sent = 0; sent < mebibytes; sent += 1) yield block;
  yield tail;
}
