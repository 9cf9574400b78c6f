import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { readChatPrompt, writeCompletion, writeCompletionChunks } from "./echo-chat.ts";
import { readMessagesPrompt, writeMessage, writeMessageEvents } from "./echo-messages.ts";
import { readResponsesPrompt, writeResponse, writeResponseEvents } from "./echo-responses.ts";
import { echoTurn } from "./echo-turn.ts";
import { responsesRefusal } from "./responses-refusals.ts";
import type { Answer } from "./upstream-exchange.ts";
import { empty, events, json } from "./upstream-answers.ts";
import { record } from "./untyped.ts";

/**
 * The default behaviour of the fake upstream: a model that repeats its input (`echo-turn.ts`), in the protocol of the path, whole or
 * streamed. It lists its models in the format that the caller's headers request.
 */
export function echoModel({ models }: { readonly models: readonly string[] }): Answer {
  return async (exchange) => {
    const { request } = exchange;
    const { pathname } = new URL(request.url, "http://upstream");
    if (request.method === "GET" && pathname === "/v1/models") {
      const isMessages = request.headers["anthropic-version"] !== undefined;
      return json(200, isMessages ? messagesList(models) : chatList(models))(exchange);
    }
    if (request.method !== "POST") return empty(404)(exchange);
    const body: unknown = JSON.parse(decode(request.headers["content-encoding"], await request.bytes()));
    const streamed = record(body).stream === true;
    switch (pathname) {
      case "/v1/messages": {
        const turn = echoTurn(readMessagesPrompt(body));
        const id = `msg_${request.number}`;
        return streamed ? events(writeMessageEvents(turn, id))(exchange) : json(200, writeMessage(turn, id))(exchange);
      }
      case "/v1/chat/completions": {
        const turn = echoTurn(readChatPrompt(body));
        const id = `chatcmpl-${request.number}`;
        const includeUsage = record(record(body).stream_options).include_usage === true;
        return streamed
          ? events(writeCompletionChunks(turn, id, includeUsage))(exchange)
          : json(200, writeCompletion(turn, id))(exchange);
      }
      case "/v1/responses": {
        const error = responsesRefusal(body);
        if (error) return json(400, { error })(exchange);
        const turn = echoTurn(readResponsesPrompt(body));
        const id = String(request.number);
        return streamed ? events(writeResponseEvents(turn, id))(exchange) : json(200, writeResponse(turn, id))(exchange);
      }
      default:
        return empty(404)(exchange);
    }
  };
}

function decode(encoding: string | undefined, bytes: Buffer): string {
  const decoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
    gzip: gunzipSync,
    br: brotliDecompressSync,
    deflate: inflateSync,
  };
  return (decoders[encoding ?? ""]?.(bytes) ?? bytes).toString("utf8");
}

function messagesList(models: readonly string[]): object {
  const data = models.map((id) => ({ type: "model", id, display_name: id, created_at: "2026-01-01T00:00:00Z" }));
  return { data, has_more: false, first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
}

function chatList(models: readonly string[]): object {
  return { object: "list", data: models.map((id) => ({ id, object: "model", created: 1_800_000_000, owned_by: "echo" })) };
}
