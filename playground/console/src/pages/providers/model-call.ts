import { EventSourceParserStream } from "eventsource-parser/stream";

export type Protocol = "messages" | "chat-completions";

export interface ModelCall {
  readonly protocol: Protocol;
  readonly model: string;
  readonly prompt: string;
}

/** Bounds what trying costs. */
const MOST_TOKENS = 1024;

/** What the proxy is sent, in either protocol. */
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

/** The very call, for a shell. */
export function toCurl(url: string, token: string, call: ModelCall): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl -N ${url}${pathOf(call.protocol)}`,
    `  -H ${quoted(`Authorization: Bearer ${token}`)}`,
    `  -H ${quoted("Content-Type: application/json")}`,
    `  -d ${quoted(JSON.stringify(requestBody(call)))}`,
  ].join(" \\\n");
}

/** What a stream tells, in either protocol. */
export interface Told {
  readonly text?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/**
 * Reads an answer's events as they come. Throws the stream's own error, and one where the stream ends without the mark of a normal end:
 * a 200 and a beginning prove nothing (specification 4.1).
 */
export async function* readAnswer(protocol: Protocol, body: ReadableStream<BufferSource>): AsyncGenerator<Told> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data) as AnyEvent;
    if (event.error) throw new Error(event.error.message ?? "The stream broke");
    if (event.type === "message_stop") return;
    yield protocol === "messages" ? toldByMessages(event) : toldByChat(event);
  }
  throw new Error("The stream ended before the answer did");
}

/** As much as is read here of the events of both protocols. */
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
