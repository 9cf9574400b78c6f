import { expect } from "vitest";
import type { Reply } from "./http-call.ts";
import { assertChatStream, assertMessagesStream } from "./stream-grammar.ts";

export type Protocol = "messages" | "chat-completions";

/** The requests of a caller of one protocol, and the answers that it expects. */
export interface Caller {
  readonly path: string;
  /** A request that says `text`; `more` is laid over it. */
  request(text?: string, more?: object): Record<string, unknown>;
  /** Reads a whole answer's text. */
  textOf(answer: unknown): string;
  /** Throws when the text of a stream breaks the protocol's grammar. */
  assertStream(text: string): void;
  /** Throws unless the stream is grammatical and ends with the protocol's own error event. */
  assertBrokenStream(text: string): void;
}

export const PROTOCOLS: readonly Protocol[] = ["messages", "chat-completions"];

/** Callers of each protocol against upstreams of each. */
export const COMBINATIONS = PROTOCOLS.flatMap((caller) => PROTOCOLS.map((upstream) => ({ caller, upstream })));
export const SAME = COMBINATIONS.filter((each) => each.caller === each.upstream);
export const CONVERTED = COMBINATIONS.filter((each) => each.caller !== each.upstream);

export const CALLERS: Readonly<Record<Protocol, Caller>> = {
  messages: {
    path: "/v1/messages",
    request: (text = "hello", more) => ({
      model: "echo-large",
      max_tokens: 1024,
      messages: [{ role: "user", content: text }],
      ...more,
    }),
    textOf: (answer) => (answer as { content: { text?: string }[] }).content.map((block) => block.text ?? "").join(""),
    assertStream: (text) => void assertMessagesStream(text),
    assertBrokenStream(text) {
      assertMessagesStream(text);
      const last = lastEvent(text);
      expect(last).toMatch(/^event: error\n/);
      expect(text).not.toContain("message_stop");
    },
  },
  "chat-completions": {
    path: "/v1/chat/completions",
    request: (text = "hello", more) => ({ model: "echo-large", messages: [{ role: "user", content: text }], ...more }),
    textOf: (answer) =>
      (answer as { choices: { message: { content: string } }[] }).choices.map((choice) => choice.message.content).join(""),
    assertStream: (text) => void assertChatStream(text),
    assertBrokenStream(text) {
      assertChatStream(text);
      const last = lastEvent(text);
      expect(JSON.parse(last.replace(/^data: ?/, ""))).toMatchObject({
        error: { message: expect.any(String), type: expect.any(String) },
      });
      expect(text).not.toContain("[DONE]");
    },
  },
};

/** Expects an error of this status in the exact shape of a protocol (open points 2) and gives its fields. */
export async function expectError(
  reply: Reply,
  status: number,
  protocol: Protocol,
): Promise<{ readonly type: string; readonly message: string }> {
  const body = (await reply.json()) as { error: { type: string; message: string } };
  expect({ status: reply.status, body }).toEqual({ status, body: shapeOf(protocol) });
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  return body.error;
}

function shapeOf(protocol: Protocol): object {
  const error = { type: expect.stringMatching(/./), message: expect.stringMatching(/./) };
  if (protocol === "messages") return { type: "error", error };
  const nullable = expect.toSatisfy((value) => value === null || typeof value === "string");
  return { error: { ...error, param: nullable, code: nullable } };
}

function lastEvent(text: string): string {
  return (
    text
      .trimEnd()
      .split(/\r?\n\r?\n/)
      .at(-1) ?? ""
  );
}
