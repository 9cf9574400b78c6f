import { getEventListeners } from "node:events";
import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { messagesAnswer, type ModelEvent, type ModelEvents } from "@portico/core/model-protocols";
import { describe, expect, it } from "vitest";
import { failureOf, pieces } from "../../conformance/models/subject.ts";

const OPTIONS = { id: "msg_1", model: "large", isStream: true };
const QUIET = new AbortController().signal;
const HELLO: readonly ModelEvent[] = [{ type: "start" }, { type: "text", text: "Hello" }, { type: "finish", reason: "end" }];

function of(...batches: readonly (readonly ModelEvent[])[]): () => ModelEvents {
  return async function* () {
    yield* batches;
  };
}

async function textOf(body: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

describe("an answer that a provider writes as events", () => {
  it("is a stream if the request asked for one", async () => {
    const answer = await messagesAnswer(of(HELLO), OPTIONS, QUIET);
    expect(answer.headers["content-type"]).toContain("text/event-stream");
    const text = await textOf(answer.body);
    expect(text).toContain('"text":"Hello"');
    expect(text).toContain("event: message_stop");
  });

  it("is one message if the request asked for no stream", async () => {
    const answer = await messagesAnswer(of(HELLO), { ...OPTIONS, isStream: false }, QUIET);
    expect(JSON.parse(await textOf(answer.body))).toMatchObject({ content: [{ type: "text", text: "Hello" }], model: "large" });
  });

  it("has the status of an error that comes before any content", async () => {
    const limited: ModelEvent = { type: "error", error: { kind: "rate-limit", message: "Slow down" } };
    const answer = await messagesAnswer(of([{ type: "start" }], [limited]), OPTIONS, QUIET);
    expect(answer.status).toBe(429);
    expect(JSON.parse(await textOf(answer.body))).toMatchObject({ error: { type: "rate_limit_error", message: "Slow down" } });
  });

  it.each([true, false])("is an error if its events have no end (stream: %s)", async (isStream) => {
    const answer = await messagesAnswer(of(HELLO.slice(0, 2)), { ...OPTIONS, isStream }, QUIET);
    const text = await textOf(answer.body);
    expect(text).toContain('"type":"error"');
    expect(text).not.toContain("message_stop");
  });

  it("ends its source when the reader leaves", async () => {
    const ended = Promise.withResolvers<void>();
    const endless = async function* (signal: AbortSignal): ModelEvents & AsyncGenerator<readonly ModelEvent[]> {
      try {
        yield HELLO.slice(0, 2);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      } finally {
        ended.resolve();
      }
    };
    const answer = await messagesAnswer(endless, OPTIONS, QUIET);
    answer.body.destroy();
    await ended.promise;
  });

  it("begins a stream whose source is silent, and keeps it alive until the source says more", async () => {
    const clock = createManualClock();
    const rest = Promise.withResolvers<void>();
    const thinking = async function* (): ModelEvents {
      yield HELLO.slice(0, 1);
      await rest.promise;
      yield HELLO.slice(1);
    };
    const opening = messagesAnswer(thinking, { ...OPTIONS, clock }, QUIET);
    await clock.advance(15_000);
    const { status, body } = await opening;
    expect(status).toBe(200);
    const next = pieces(body);
    expect(await next()).toContain("event: message_start");
    const silent = next();
    await clock.advance(15_000);
    expect(await silent).toBe('event: ping\ndata: {"type": "ping"}\n\n');
    rest.resolve();
    expect(await next()).toContain('"text":"Hello"');
    body.destroy();
  });

  it.each([true, false])("fails with ModelTimeout after the longest silence (stream: %s)", async (isStream) => {
    const clock = createManualClock();
    const silence = { ms: 20_000, message: "It said nothing" };
    const failing = failureOf(answerText(messagesAnswer(silentSource, { ...OPTIONS, isStream, clock, silence }, QUIET)));
    await clock.advance(15_000);
    await clock.advance(5_000);
    expect(await failing).toEqual(new ports.ModelTimeout("It said nothing"));
  });

  it.each([true, false])("is not held by a source that ignores its signal (stream: %s)", async (isStream) => {
    const leaving = new AbortController();
    const failing = failureOf(messagesAnswer(silentSource, { ...OPTIONS, isStream }, leaving.signal));
    const reason = new Error("the caller left");
    leaving.abort(reason);
    expect(await failing).toBe(reason);
  });

  it("closes its body with the signal's reason, also if the source ignores its signal", async () => {
    const leaving = new AbortController();
    const deaf = async function* (): ModelEvents {
      yield HELLO.slice(0, 2);
      await new Promise(() => {});
    };
    const { body } = await messagesAnswer(deaf, OPTIONS, leaving.signal);
    const reading = failureOf(textOf(body));
    const reason = new Error("the caller left");
    leaving.abort(reason);
    expect(await reading).toBe(reason);
    expect(body.destroyed).toBe(true);
  });

  it("breaks its body with what the source throws after content", async () => {
    const lost = new ports.ModelUnreachable("The connection broke");
    const broken = async function* (): ModelEvents {
      yield HELLO.slice(0, 2);
      throw lost;
    };
    const { body } = await messagesAnswer(broken, OPTIONS, QUIET);
    expect(await failureOf(textOf(body))).toBe(lost);
  });

  it("takes events from its source only as fast as the reader takes the answer", async () => {
    let made = 0;
    const endless = async function* (): ModelEvents {
      for (; ; made++) yield [{ type: "text", text: "a".repeat(1024) }];
    };
    const { body } = await messagesAnswer(endless, OPTIONS, QUIET);
    await pieces(body)();
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBeLessThan(100);
    body.destroy();
  });

  it("refuses a whole answer that fills the memory", async () => {
    const endless = async function* (): ModelEvents {
      for (;;) yield [{ type: "text", text: "a".repeat(8 * 1024 * 1024) }];
    };
    const { status } = await messagesAnswer(endless, { ...OPTIONS, isStream: false }, QUIET);
    expect(status).toBe(502);
  });

  it.each([true, false])("leaves no listener on the caller's signal (stream: %s)", async (isStream) => {
    const { signal } = new AbortController();
    await answerText(messagesAnswer(of(HELLO), { ...OPTIONS, isStream }, signal));
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

async function* silentSource(): ModelEvents {
  await new Promise(() => {});
  yield [];
}

async function answerText(answer: Promise<ports.ModelAnswer>): Promise<string> {
  return textOf((await answer).body);
}
