import { createManualClock } from "@portico/adapters/clock/manual";
import { describe, expect, it } from "vitest";
import { CALLERS, CONVERTED, type Protocol, SAME } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";
import type { Reply } from "../../harness/http-call.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { events } from "../../harness/upstream-answers.ts";

const KEEP_ALIVE: Readonly<Record<Protocol, RegExp>> = {
  messages: /^event: ping\ndata: ?\{ ?"type": ?"ping" ?\}\n\n/gm,
  "chat-completions": /^:[^\n]*\n\n/gm,
};
const scriptOf = (protocol: Protocol) => (protocol === "messages" ? messagesEvents("one two") : chatEvents("one two"));

describe.each(["node", "fetch"] as const)("keep-alive of converted streams (open points 2) on a %s host", (host) => {
  describe.each(CONVERTED)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request, assertStream } = CALLERS[caller];
    const script = scriptOf(protocol);
    const count = (text: string) => text.match(KEEP_ALIVE[caller])?.length ?? 0;

    it("head and first event go out at once, before the upstream said a word", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(events([new Promise(() => {})]));
      await using proxy = await startProxy({ host, clock: createManualClock(), providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      expect(reply.status).toBe(200);
      expect(reply.headers["content-type"]).toMatch(/^text\/event-stream/);
      const first = String(await reply.read());
      expect(first).toMatch(caller === "messages" ? /^event: message_start\n/ : /"role":"assistant"/);
      reply.leave();
    });

    it("an answer ends with its last counts, and 15 s later its upstream, which kept it open (maximhq/bifrost#6784)", async () => {
      await using upstream = await startFakeUpstream();
      const last = protocol === "messages" ? messagesEvents("one two") : chatEvents("one two", true).slice(0, -1);
      upstream.answerNext(events([...last, new Promise(() => {})]));
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      assertStream(await reply.text());
      expect(upstream.openExchanges).toBe(1);
      await clock.advance(15_000);
      await upstream.quiet();
    });

    it("one follows every 15 s of silence, and the stream stays grammatical", async () => {
      await using upstream = await startFakeUpstream();
      const speak = createGate();
      upstream.answerNext(events([speak.opened, ...script]));
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      let text = String(await reply.read());
      const before = count(text);
      await clock.advance(14_999);
      for (let beats = 1; beats <= 4; beats += 1) {
        await clock.advance(beats === 1 ? 1 : 15_000);
        text += await readUntil(reply, () => true);
        expect(count(text) - before, `after ${beats} × 15 s`).toBe(beats);
      }
      speak.open();
      text += await reply.text();
      assertStream(text);
      expect(text).toContain("two");
    });

    it("every event restarts the 15 s", async () => {
      await using upstream = await startFakeUpstream();
      const [one, two, end] = [createGate(), createGate(), createGate()];
      const at = (word: string) => script.findIndex((event) => event.includes(word));
      upstream.answerNext(
        events([
          one.opened,
          ...script.slice(0, at("one") + 1),
          two.opened,
          ...script.slice(at("one") + 1, at("two") + 1),
          end.opened,
          ...script.slice(at("two") + 1),
        ]),
      );
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      let text = "";
      for (const [gate, word] of [
        [one, "one"],
        [two, "two"],
      ] as const) {
        await clock.advance(10_000);
        gate.open();
        text += await readUntil(reply, (so) => so.includes(`${word}"`));
      }
      await clock.advance(10_000);
      end.open();
      text += await reply.text();
      assertStream(text);
      // A converted stream does not contain the upstream's own pings: only the proxy's are counted here.
      expect(count(text)).toBe(0);
    });

    it("only between events: never inside one that has arrived half", async () => {
      await using upstream = await startFakeUpstream();
      const rest = createGate();
      const index = script.findIndex((event) => event.includes("one"));
      const half = script[index] ?? "";
      upstream.answerNext(
        events([...script.slice(0, index), half.slice(0, 30), rest.opened, half.slice(30), ...script.slice(index + 1)]),
      );
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(path, request("hello", { stream: true }));
      let text = String(await reply.read());
      await clock.advance(15_000);
      text += await readUntil(reply, (so) => count(text + so) > 0);
      rest.open();
      text += await reply.text();
      assertStream(text);
      expect(text).toMatch(/one/);
    });

    it("no keep-alive follows the end", async () => {
      await using upstream = await startFakeUpstream();
      upstream.answerNext(events(script));
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream }] });
      const text = await (await proxy.post(path, request("hello", { stream: true }))).text();
      await clock.advance(60_000);
      assertStream(text);
      expect(proxy.telemetry.lines.filter((line) => line.level === "error")).toEqual([]);
    });
  });

  describe.each(SAME)("$caller passed through", ({ caller, upstream: protocol }) => {
    it("a stream that is forwarded unchanged gets no keep-alive", async () => {
      await using upstream = await startFakeUpstream();
      const script = scriptOf(protocol);
      const rest = createGate();
      upstream.answerNext(events([...script.slice(0, 3), rest.opened, ...script.slice(3)]));
      const clock = createManualClock();
      await using proxy = await startProxy({ host, clock, providers: [{ protocol, upstream }] });
      const reply = await proxy.post(CALLERS[caller].path, CALLERS[caller].request("hello", { stream: true }));
      let text = await readUntil(reply, (so) => so.includes(script[2] ?? ""));
      await clock.advance(120_000);
      rest.open();
      text += await reply.text();
      expect(text).toBe(script.join(""));
    });
  });
});

async function readUntil(reply: Reply, isEnough: (text: string) => boolean): Promise<string> {
  let text = "";
  do {
    const chunk = await reply.read();
    if (chunk === undefined) throw new Error("The stream ended early");
    text += chunk.toString("utf8");
  } while (!isEnough(text));
  return text;
}
