import Anthropic from "@anthropic-ai/sdk";
import { createManualClock } from "@portico/adapters/clock/manual";
import type { Adapter } from "@portico/core";
import type { MessagesClient } from "./cloud-libraries.ts";
import { type ProxyApp, startProxy } from "./proxy-app.ts";
import type { UpstreamRequest } from "./upstream-request.ts";

/** The time of the provider. A library has its own from `Date`. */
export const NOW = "2026-03-04T05:06:07Z";

/** What a request says to its service. Beside it, libraries tell who they are. */
export interface RequestParts {
  readonly method: string;
  readonly url: string;
  readonly host: string | undefined;
  readonly type: string | undefined;
  readonly accept: string | undefined;
  readonly body: unknown;
}

const TOOL = {
  name: "look_up",
  description: "Finds",
  input_schema: { type: "object", properties: { word: { type: "string" } } },
};
/** What a vendor's library and a provider are both asked. */
export const QUESTIONS: readonly (readonly [what: string, question: object])[] = [
  [
    "text",
    { messages: [{ role: "user", content: "Grüße, 世界 \u{1F600}" }], thinking: { type: "enabled", budget_tokens: 1024 } },
  ],
  ["a call of a tool", { messages: [{ role: "user", content: 'look_up {"word":"Straße"}' }], tools: [TOOL] }],
  [
    "the result of a tool",
    {
      system: [{ type: "text", text: "Be brief", cache_control: { type: "ephemeral" } }],
      metadata: { user_id: "u-1" },
      stop_sequences: ["STOP"],
      messages: [
        { role: "user", content: "look" },
        { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "look_up", input: { word: "a" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "found" }] },
      ],
      tools: [TOOL],
    },
  ],
];

export function questionOf(question: object, model: string): object {
  return { model, max_tokens: 2048, ...question };
}

/** A proxy with one provider. */
export function startCloud(adapter: Adapter): Promise<ProxyApp> {
  return startProxy({ clock: createManualClock({ startAt: NOW }), providers: [{ protocol: "own", id: "cloud", adapter }] });
}

/** A client of the published protocol, which calls the provider. */
export async function clientOf(proxy: ProxyApp, more: object = {}): Promise<MessagesClient> {
  const baseURL = proxy.url.replace(/\/v1$/, "");
  return new Anthropic({ apiKey: await proxy.token(), baseURL, maxRetries: 0, ...more }) as unknown as MessagesClient;
}

export async function partsOf(request: UpstreamRequest): Promise<RequestParts> {
  const { method, url, headers } = request;
  return { method, url, host: headers.host, type: headers["content-type"], accept: headers.accept, body: await request.json() };
}

export async function readAll<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of stream) all.push(each);
  return all;
}

/** The events of a stream as they came. */
export async function eventsOf(client: MessagesClient, asked: object): Promise<unknown[]> {
  return readAll((await client.messages.create({ ...asked, stream: true })) as AsyncIterable<unknown>);
}

/** The host that a provider without a `baseUrl` calls. */
export async function addressOf(open: (send: typeof fetch) => Promise<ProxyApp>, model: string): Promise<string | undefined> {
  let called: string | undefined;
  await using proxy = await open(async (input) => {
    called = new URL(String(input instanceof Request ? input.url : input)).host;
    return Response.json({});
  });
  await proxy.post("/v1/messages", questionOf(QUESTIONS[0]![1], model));
  return called;
}

/** The fields of a message that do not depend on how it was read. */
export function messageOf(message: unknown): object {
  const { content, stop_reason, usage } = message as Record<"content" | "stop_reason" | "usage", unknown>;
  return { content, stop_reason, usage };
}

/** The events of a stream that has begun. */
export const BEGUN = [
  {
    type: "message_start",
    message: {
      ...{ id: "msg_1", type: "message", role: "assistant", model: "claude", content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hel" } },
];
