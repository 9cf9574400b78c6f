import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { CALLERS, COMBINATIONS } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { events, huge, never } from "../../harness/upstream-answers.ts";

const MIB = 1024 * 1024;

describe.each(["node", "fetch"] as const)("the caller goes away (open points 2) on a %s host", (host) => {
  describe.each(COMBINATIONS)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];
    const isConverting = caller !== protocol;
    const script = protocol === "messages" ? messagesEvents("one two") : chatEvents("one two");

    it.each([false, true])("before the answer (stream: %s): the upstream's call is aborted", async (isStream) => {
      await using upstream = await startFakeUpstream();
      upstream.answerAll(never());
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const caller = new AbortController();
      const body = JSON.stringify(request("hello", { stream: isStream }));
      const headers = { "content-type": "application/json", "x-api-key": await proxy.token() };
      // The caller has left: its answer does not matter, but no call may wait forever.
      const answering = proxy.call({ path, headers, body, signal: caller.signal }).catch(() => undefined);
      const call = await upstream.request();
      await call.sha256();
      caller.abort();
      expect(await call.outcome).toBe("aborted");
      await answering;
    });

    it("in the middle of a stream: the upstream's call is aborted", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(events([...script.slice(0, 4), new Promise(() => {})]));
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      await reply.read();
      const call = await upstream.request();
      expect(call.stage).toBe("answering");
      reply.leave();
      expect(await call.outcome).toBe("aborted");
    });

    it("by giving up the body alone, at any moment: the upstream's call is aborted and nothing breaks", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerAll(events([...script.slice(0, 4), new Promise(() => {})]));
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const headers = { "content-type": "application/json", "x-api-key": await proxy.token() };
      const body = JSON.stringify(request("hello", { stream: true }));
      // The host's own Response on a fetch host: nothing of the test stands in between.
      const ask = host === "fetch" ? proxy.app.surface("proxy").fetch : fetch;
      for (let turns = 0; turns < 12; turns += 1) {
        const response = await ask(new Request(proxy.url.replace("/v1", path), { method: "POST", headers, body }));
        for (let turn = 0; turn < turns; turn += 1) await (turns % 2 === 0 ? Promise.resolve() : setImmediate());
        await response.body?.cancel();
      }
      expect(await Promise.all(upstream.requests.map((call) => call.outcome))).toEqual(Array(12).fill("aborted"));
    });

    it("while an endless stream is running: the upstream's call is aborted", async () => {
      await using upstream = await startFakeUpstream();
      const word = script.find((event) => event.includes("one")) ?? "";
      const start = script.slice(0, script.indexOf(word));
      upstream.answerNext(events(endlessly(start, word)));
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      for (let reads = 0; reads < 5; reads += 1) expect(await reply.read()).toBeDefined();
      reply.leave();
      expect(await (await upstream.request()).outcome).toBe("aborted");
    });

    it("in the middle of its upload: the upstream call is aborted", async () => {
      await using upstream = await startFakeUpstream({ keepBodies: false });
      upstream.answerAll(never());
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const caller = new AbortController();
      const headers = { "content-type": "application/json", "x-api-key": await proxy.token() };
      const sent = Promise.withResolvers<void>();
      const answering = proxy
        .call({ path, headers, body: unfinished(() => sent.resolve()), signal: caller.signal })
        .catch(() => undefined);
      await sent.promise;
      // Passed through, a body of this size is on its way upstream already; to be converted, it is still awaited.
      if (!isConverting) await (await upstream.request()).arrived(MIB);
      caller.abort();
      await answering;
      await upstream.quiet();
      for (const call of upstream.requests) expect(await call.outcome).toBe("aborted");
    });

    it.skipIf(isConverting)("a caller that doesn't read holds the upstream back, and leaving frees it", async () => {
      await using upstream = await startFakeUpstream();
      const bytes = 512 * MIB;
      let socket: Socket | undefined;
      upstream.answerNext((exchange) => {
        socket = exchange.socket;
        return huge(bytes, { "content-type": "text/event-stream" })(exchange);
      });
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      await reply.read();
      // Without a reader, the transfer comes to rest. Without backpressure, that would be at its end.
      expect(await restingPlace(() => socket?.bytesWritten ?? 0)).toBeLessThan(64 * MIB);
      reply.leave();
      expect(await (await upstream.request()).outcome).toBe("aborted");
    });
  });
});

function* endlessly(start: readonly string[], event: string): Generator<string> {
  yield* start;
  for (;;) yield event;
}

async function* unfinished(sent: () => void): AsyncGenerator<string | Uint8Array> {
  yield '{"model":"echo-large","pad":"';
  for (let mebibytes = 0; mebibytes < 4; mebibytes += 1) yield Buffer.alloc(MIB, "a");
  sent();
  await new Promise(() => {});
}

/** The value of a growing number once it has not grown for many turns of the event loop. */
async function restingPlace(read: () => number): Promise<number> {
  let last = read();
  for (let still = 0; still < 500; still += 1) {
    await setImmediate();
    if (read() !== last) still = 0;
    last = read();
  }
  return last;
}
