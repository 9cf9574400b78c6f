import type { ports } from "@portico/core";

/** The model that every contestant's provider serves. */
export const MODEL = "bench-model";

/** Chunks of a streamed answer that contain text. */
export const STREAM_CHUNKS = 50;

/** The kind of answer that a request asks for: a whole answer, or chunks. */
export type Kind = "plain" | "stream";

export const CALL_PATHS: Readonly<Record<ports.ModelProtocol, string>> = {
  messages: "/v1/messages",
  "chat-completions": "/v1/chat/completions",
};

/** The body of a normal call, about 1 KiB: some messages, the last of which is a question. */
export function requestBody(protocol: ports.ModelProtocol, kind: Kind): string {
  const system = "You are a helpful assistant. Answer briefly, and say so when you do not know. ".repeat(3);
  const turns = [
    { role: "user", content: 'What does "eventually consistent" mean?\nIn two sentences, please. '.repeat(4) },
    { role: "assistant", content: "Replicas of a value may differ for a while, and agree in the end. ".repeat(4) },
    { role: "user", content: "And how long does that take? ".repeat(4) },
  ];
  const common = { model: MODEL, max_tokens: 1024, temperature: 0.7, ...(kind === "stream" && { stream: true }) };
  return JSON.stringify(
    protocol === "messages"
      ? { ...common, system, messages: turns }
      : { ...common, messages: [{ role: "system", content: system }, ...turns] },
  );
}

/** A whole answer of about 1 KiB. */
export function wholeAnswer(protocol: ports.ModelProtocol): string {
  const text = "That depends on the network, the load and the store: usually milliseconds, seldom seconds. ".repeat(7);
  if (protocol === "messages") {
    return JSON.stringify({
      id: "msg_bench",
      type: "message",
      role: "assistant",
      model: MODEL,
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 212, output_tokens: 140 },
    });
  }
  return JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: 1_900_000_000,
    model: MODEL,
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 212, completion_tokens: 140, total_tokens: 352 },
  });
}

/** The events of a streamed answer as texts: the beginning, 50 pieces of text, the end. */
export function streamedAnswer(protocol: ports.ModelProtocol): readonly string[] {
  const pieces = Array.from({ length: STREAM_CHUNKS }, (_, index) => ` word${String(index).padStart(2, "0")}`);
  return protocol === "messages" ? messagesEvents(pieces) : chatEvents(pieces);
}

function messagesEvents(pieces: readonly string[]): string[] {
  const event = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
  const message = {
    id: "msg_bench",
    type: "message",
    role: "assistant",
    model: MODEL,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 212, output_tokens: 1 },
  };
  const begin =
    event("message_start", { message }) + event("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  const end =
    event("content_block_stop", { index: 0 }) +
    event("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 50 } }) +
    event("message_stop", {});
  return [begin, ...pieces.map((text) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } })), end];
}

function chatEvents(pieces: readonly string[]): string[] {
  const chunk = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_900_000_000, model: MODEL };
  const event = (choices: readonly object[], more?: object) => `data: ${JSON.stringify({ ...chunk, choices, ...more })}\n\n`;
  const begin = event([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
  const usage = { prompt_tokens: 212, completion_tokens: 50, total_tokens: 262 };
  const end = `${event([{ index: 0, delta: {}, finish_reason: "stop" }])}${event([], { usage })}data: [DONE]\n\n`;
  return [begin, ...pieces.map((content) => event([{ index: 0, delta: { content }, finish_reason: null }])), end];
}
