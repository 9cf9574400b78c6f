import { EventSourceParserStream } from "eventsource-parser/stream";
import { PageFailure } from "../../api/page-failure.ts";

export type Protocol = "messages" | "chat-completions";

export interface ModelCall {
  readonly protocol: Protocol;
  readonly model: string;
  readonly prompt: string;
}

/** Limits the cost of a test call. */
const MOST_TOKENS = 1024;

/** The request to the proxy, for both protocols. */
export function requestBody({ protocol, model, prompt }: ModelCall) {
  const messages = [{ role: "user", content: prompt }];
  return protocol === "messages"
    ? { model, max_tokens: MOST_TOKENS, stream: true, messages }
    : { model, max_completion_tokens: MOST_TOKENS, stream: true, stream_options: { include_usage: true }, messages };
}

/** Below the proxy's `/v1`. */
export function pathOf(protocol: Protocol): string {
  return protocol === "messages" ? "/messages" : "/chat/completions";
}

/** The same call as a shell command. */
export function toCurl(url: string, token: string, call: ModelCall): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl -N ${url}${pathOf(call.protocol)}`,
    `  -H ${quoted(`Authorization: Bearer ${token}`)}`,
    `  -H ${quoted("Content-Type: application/json")}`,
    `  -d ${quoted(JSON.stringify(requestBody(call)))}`,
  ].join(" \\\n");
}

/** The content of a stream, for both protocols. */
export interface Told {
  readonly text?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/**
 * Reads an answer's events as they arrive. Throws the stream's own error. Also throws if the stream ends without the mark of a normal end:
 * status 200 and a started answer do not prove success (specification 4.1).
 */
export async function* readAnswer(protocol: Protocol, body: ReadableStream<BufferSource>): AsyncGenerator<Told> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data) as AnyEvent;
    if (event.error) throw new PageFailure(event.error.message ?? "The stream failed");
    if (event.type === "message_stop") return;
    yield protocol === "messages" ? toldByMessages(event) : toldByChat(event);
  }
  throw new PageFailure("The stream ended before the answer was complete");
}

/** The fields of both protocols' events that are read here. */
interface AnyEvent {
  readonly error?: { readonly message?: string };
  readonly type?: string;
  readonly delta?: { readonly text?: string };
  readonly message?: { readonly usage?: Usage };
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
  readonly usage?: Usage | null;
}

interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
}

function toldByMessages({ delta, message, usage = message?.usage }: AnyEvent): Told {
  return told(delta?.text, usage?.input_tokens, usage?.output_tokens);
}

function toldByChat({ choices, usage }: AnyEvent): Told {
  return told(choices?.[0]?.delta?.content ?? undefined, usage?.prompt_tokens, usage?.completion_tokens);
}

function told(text: string | undefined, inputTokens: number | undefined, outputTokens: number | undefined): Told {
  return {
    ...(text !== undefined && { text }),
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
  };
}
