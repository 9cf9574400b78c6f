import { Readable } from "node:stream";
import { defineAdapter, ports } from "@portico/core";
import { abortError } from "./abort-error.ts";
import { type DemoAnswer, demoAnswer } from "./demo/answer.ts";
import { parseDemoRequest } from "./demo/request.ts";

/** Options of `demo`. */
export interface DemoOptions {
  /** Provider configuration id; default `demo`. */
  readonly id?: string;
}

const MODEL = "demo";
const LARGEST_REQUEST = 32 * 1024 * 1024;

/**
 * The offline provider (open points 2). It needs no key and no network, uses Messages, and gives the same answer to the same
 * question.
 */
export const demo = defineAdapter({
  name: "models/demo",
  port: ports.models,
  needs: {},
  open: (_given, options: DemoOptions): ports.ModelProvider => ({
    id: options.id ?? "demo",
    type: "demo",
    protocol: "messages",
    listModels: async () => [MODEL],
    async send(call, signal) {
      const body = await readText(call.body, signal);
      if (body === undefined) return refusal(413, "request_too_large", "The body is larger than 32 MiB");
      const request = parseDemoRequest(body);
      if (typeof request === "string") return refusal(400, "invalid_request_error", request);
      const answer = demoAnswer(request);
      const model = request.model ?? MODEL;
      if (request.stream !== true) return json(200, message(model, answer));
      const stream = Readable.from(events(model, answer), { objectMode: false });
      return { status: 200, headers: { "content-type": "text/event-stream" }, body: failsWith(signal, stream) };
    },
    redact: (text) => text,
  }),
});

/** Undefined for a body that is too large. Throws the signal's reason. The body is never left open. */
async function readText(body: Uint8Array | Readable, signal: AbortSignal): Promise<string | undefined> {
  if (signal.aborted && body instanceof Readable) body.destroy();
  if (signal.aborted) throw abortError(signal);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body instanceof Readable ? (failsWith(signal, body) as AsyncIterable<Uint8Array>) : [body]) {
    size += chunk.length;
    if (size > LARGEST_REQUEST) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The same stream. It fails when the caller leaves before it has ended. */
function failsWith(signal: AbortSignal, stream: Readable): Readable {
  const onAbort = () => stream.destroy(abortError(signal));
  const forget = () => signal.removeEventListener("abort", onAbort);
  signal.addEventListener("abort", onAbort, { once: true });
  return stream.once("end", forget).once("close", forget);
}

function refusal(status: number, type: string, message: string): ports.ModelAnswer {
  return json(status, { type: "error", error: { type, message } });
}

function json(status: number, value: unknown): ports.ModelAnswer {
  const body = Buffer.from(JSON.stringify(value));
  return {
    status,
    headers: { "content-type": "application/json", "content-length": String(body.length) },
    body: Readable.from([body], { objectMode: false }),
  };
}

function message(model: string, answer: DemoAnswer): object {
  return {
    id: "msg_demo",
    type: "message",
    role: "assistant",
    model,
    content: answer.content,
    stop_reason: answer.stopReason,
    stop_sequence: null,
    usage: { input_tokens: answer.inputTokens, output_tokens: answer.outputTokens },
  };
}

/** The same answer as a stream: text word by word, tool arguments in pieces. */
function* events(model: string, answer: DemoAnswer): Generator<string> {
  const usage = { input_tokens: answer.inputTokens, output_tokens: 0 };
  yield event("message_start", { message: { ...message(model, answer), content: [], stop_reason: null, usage } });
  for (const [index, block] of answer.content.entries()) {
    const isText = block.type === "text";
    yield event("content_block_start", { index, content_block: isText ? { type: "text", text: "" } : { ...block, input: {} } });
    const pieces = isText ? (block.text.match(/\s*\S+|\s+$/g) ?? []) : (JSON.stringify(block.input).match(/[\s\S]{1,16}/g) ?? []);
    for (const piece of pieces) {
      yield event("content_block_delta", {
        index,
        delta: isText ? { type: "text_delta", text: piece } : { type: "input_json_delta", partial_json: piece },
      });
    }
    yield event("content_block_stop", { index });
  }
  yield event("message_delta", {
    delta: { stop_reason: answer.stopReason, stop_sequence: null },
    usage: { output_tokens: answer.outputTokens },
  });
  yield event("message_stop", {});
}

function event(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
