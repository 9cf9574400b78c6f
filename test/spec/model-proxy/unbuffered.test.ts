import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, COMBINATIONS, SAME } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { events, json, slowReader } from "../../harness/upstream-answers.ts";

const MIB = 1024 * 1024;

describe.each(["node", "fetch"] as const)("unbuffered (open points 2) on a %s host", (host) => {
  describe.each(COMBINATIONS)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];

    it("each event reaches the caller before the upstream sends the next", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const script = protocol === "messages" ? messagesEvents("one two three") : chatEvents("one two three");
      const gates = script.map(() => createGate());
      upstream.answerNext(events(script.flatMap((event, index) => [event, gates[index]?.opened ?? ""])));

      const reply = await proxy.post(path, request("hello", { stream: true }));
      let text = "";
      for (const [index, word] of ["one", "two", "three"].entries()) {
        // The gates before this word are open, the ones after it are not: what arrives now was not waited for.
        const at = script.findIndex((event) => event.includes(word));
        for (const gate of gates.slice(0, at)) gate.open();
        while (!text.includes(word)) text += String(await reply.read());
        expect(text, `before word ${index + 2}`).not.toContain(["two", "three", "[end]"][index]);
      }
      for (const gate of gates) gate.open();
      text += await reply.text();
      CALLERS[caller].assertStream(text);
    });

    it("the beginning of an answer reaches the caller before the upstream has a word", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const [begin = "", ...rest] = protocol === "messages" ? messagesEvents("one two three") : chatEvents("one two three");
      const gate = createGate();
      upstream.answerNext(events([begin, gate.opened, ...rest]));

      const reply = await proxy.post(path, request("hello", { stream: true }));
      const wanted = caller === "messages" ? "event: message_start\n" : '"delta":{"role":"assistant","content":""}';
      let text = "";
      while (!text.includes(wanted)) text += String(await reply.read());
      expect(text).not.toContain("one");
      gate.open();
      CALLERS[caller].assertStream(text + (await reply.text()));
    });
  });

  describe.each(SAME)("$caller upload", ({ caller, upstream: protocol }) => {
    const { path } = CALLERS[caller];
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    let headers: Readonly<Record<string, string>>;

    beforeAll(async () => {
      upstream = await startFakeUpstream({ keepBodies: false });
      proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      headers = { "content-type": "application/json", "x-api-key": await proxy.token() };
    });
    beforeEach(() => {
      upstream.reset();
      upstream.answerAll(async (exchange) => {
        await exchange.request.sha256();
        await json(200, { ok: true })(exchange);
      });
    });
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    it("a large body whose model comes first is forwarded before it is whole", async () => {
      const rest = createGate();
      const body = pausing(['{"model":"echo-large","pad":"', ...filler(8)], rest.opened, ['"}']);
      const answering = proxy.call({ path, headers, body });
      const arriving = await upstream.request();
      await arriving.arrived(MIB);
      rest.open();
      expect((await answering).status).toBe(200);
      expect(arriving.received).toBe(8 * MIB + '{"model":"echo-large","pad":""}'.length);
    });

    it("a model at the very end of 30 MB works, with and without a declared length", async () => {
      const body = Buffer.concat(
        ['{"pad":"', ...filler(30), '","model":"echo-large"}'].map((piece) => Buffer.from(piece as string)),
      );
      const digest = createHash("sha256").update(body).digest("hex");
      for (const each of [body, pausing([body.subarray(0, 20 * MIB), body.subarray(20 * MIB)], Promise.resolve(), [])]) {
        upstream.reset();
        upstream.answerAll(async (exchange) => {
          await exchange.request.sha256();
          await json(200, { ok: true })(exchange);
        });
        expect((await proxy.call({ path, headers, body: each })).status).toBe(200);
        expect(await (await upstream.request()).sha256()).toBe(digest);
      }
    });

    it("a large body that turns out to be no JSON after its model aborts the upstream and is 400", async () => {
      const rest = createGate();
      const body = pausing(['{"model":"echo-large","pad":"', ...filler(4)], rest.opened, ['"} and more']);
      const answering = proxy.call({ path, headers, body });
      const begun = await upstream.request();
      rest.open();
      expect((await answering).status).toBe(400);
      expect(await begun.outcome).toBe("aborted");
    });

    it("an upstream that answers before it read the request has its answer passed on", async () => {
      const never = createGate();
      upstream.answerNext(slowReader(never.opened, json(413, { error: { message: "too much", type: "request_too_large" } })));
      const body = pausing(['{"model":"echo-large","pad":"', ...filler(8), '"}'], Promise.resolve(), []);
      // A caller that asks to close after the answer may lose it to a reset while it still sends: that is TCP, not the proxy.
      expect((await proxy.call({ path, headers: { ...headers, connection: "keep-alive" }, body })).status).toBe(413);
    });

    it("an upstream that reads slowly holds the caller back and still gets every byte", async () => {
      const reads = createGate();
      upstream.answerNext(
        slowReader(reads.opened, async (exchange) => json(200, { digest: await exchange.request.sha256() })(exchange)),
      );
      const body = Buffer.concat(
        ['{"model":"echo-large","pad":"', ...filler(8), '"}'].map((piece) => Buffer.from(piece as string)),
      );
      const answering = proxy.call({ path, headers, body });
      await upstream.request();
      reads.open();
      const reply = await answering;
      expect(await reply.json()).toEqual({ digest: createHash("sha256").update(body).digest("hex") });
    });
  });
});

function filler(mebibytes: number): Buffer[] {
  return Array.from({ length: mebibytes }, () => Buffer.alloc(MIB, "a"));
}

async function* pausing(
  before: readonly (string | Uint8Array)[],
  until: Promise<unknown>,
  then: readonly (string | Uint8Array)[],
): AsyncGenerator<string | Uint8Array> {
  yield* before;
  await until;
  yield* then;
}
