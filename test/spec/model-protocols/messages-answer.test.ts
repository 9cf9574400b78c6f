import { messagesAnswer, type ModelEvent, type ModelEvents } from "@portico/core/model-protocols";
import { describe, expect, it } from "vitest";

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
});
