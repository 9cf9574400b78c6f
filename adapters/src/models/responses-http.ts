import { hash } from "node:crypto";
import { defineAdapter, ports } from "@portico/core";
import {
  messagesAnswer,
  type ModelError,
  type ModelEvent,
  type ModelEvents,
  readErrorText,
  readUpstreamError,
  type RefusedPart,
  type RefusedParts,
  refusal,
  refusedPart,
  refusesPart,
  type ResponsesRequestBytes,
  stopAt,
} from "@portico/core/model-protocols";
import { openHttpProvider } from "./http/http-provider.ts";
import type { HttpProviderOptions } from "./http-options.ts";
import { answerEvents } from "./responses/answer-events.ts";
import { LearnedRefusals } from "./responses/learned-refusals.ts";
import { readRequest, RequestUnreadable } from "./responses/read-request.ts";
import { createResponsesConverter } from "./responses/responses-converter.ts";

/**
 * A provider that uses OpenAI's Responses API over HTTP, with its key as a bearer token. Its callers see a provider of Messages: it converts
 * requests and answers. `dropped` of an answer names the fields that were left out.
 */
export const responsesHttp = defineAdapter({
  name: "models/responses-http",
  port: ports.models,
  needs: { clock: ports.clock, ids: ports.ids, telemetry: ports.telemetry },
  open({ clock, ids, telemetry }, options: HttpProviderOptions, scope): ports.ModelProvider {
    const upstream = openHttpProvider(
      {
        protocol: "messages",
        callPath: "/responses",
        credentialHeader: (credential) => ({ authorization: `Bearer ${credential}` }),
        defaults: {},
      },
      options,
      { clock, telemetry },
      scope,
    );
    const converter = createResponsesConverter(clock);
    scope.onClose(() => converter.close());
    const learned = new LearnedRefusals(clock);
    // A vendor seals reasoning for one account.
    const owner = hash("sha256", `${options.id}\n${options.baseUrl}`, "hex").slice(0, 12);

    /** Sends the request again without a part that the upstream refuses, if it keeps its meaning without that part. */
    const ask = async (call: ports.ModelCall, bytes: Uint8Array, signal: AbortSignal): Promise<Asked> => {
      const parts: RefusedPart[] = [];
      let named: RefusedParts["named"];
      let last: RefusedPart | "named" | undefined;
      const facts = call.model === undefined ? {} : (upstream.facts?.(call.model) ?? {});
      let failure: ports.ModelAnswer | undefined;
      for (;;) {
        const converted = await converter.convert(
          { bytes, owner, facts, refused: { parts, named, ofModels: learned.ofModels } },
          signal,
        );
        if ("refused" in converted) {
          const { message, field: param, details } = converted.refused;
          return { failure: refusal({ kind: "invalid-request", message, param, details }) };
        }
        const { request } = converted;
        const isLeft = last === "named" ? request.isLighter : last === undefined || request.left.includes(last);
        if (failure && !isLeft) return { failure };
        const ofModel = call.model === undefined ? {} : { model: call.model };
        const answer = await upstream.send(
          { headers: requestHeaders(call, request), query: "", body: request.body, ...ofModel },
          signal,
        );
        const { status } = answer;
        if (status >= 200 && status < 300) return { request, answer };
        const text = upstream.redact(await readErrorText(answer));
        signal.throwIfAborted();
        const error = readUpstreamError("chat-completions", status, text || undefined);
        failure = refusal(error, answerHeaders(answer), status);
        if (!refusesPart(status)) return { failure };
        const part = refusedPart(error);
        if (part === undefined ? named : parts.includes(part)) return { failure };
        last = part ?? "named";
        if (part === undefined) {
          named = { status, error };
        } else {
          learned.learn(request.model, part, error);
          parts.push(part);
        }
      }
    };

    const { setsParameters: _set, ...shown } = upstream;
    return {
      ...shown,
      upstreamProtocol: "responses",
      // The name and the parameters are set here, in the upstream's own protocol.
      facts(model) {
        const { upstream: _name, parameters: _parameters, ...facts } = upstream.facts?.(model) ?? {};
        return facts;
      },
      async send(call, signal) {
        const bytes = await readRequest(call, signal).catch(unreadable);
        if (!(bytes instanceof Uint8Array)) return refusal(bytes);
        const { failure, request, answer } = await ask(call, bytes, signal);
        if (failure) return failure;
        const stop = stopAt(request.stopSequences);
        const forReader = (events: readonly ModelEvent[]) =>
          stop(events).map((event) => forCaller(event, request.toolNames, upstream));
        const written = await messagesAnswer(
          (left) => mapped(answerEvents(answer, owner, left), forReader),
          {
            id: ids.id("msg_"),
            model: request.model,
            isStream: request.isStream,
            clock,
            headers: answerHeaders(answer),
          },
          signal,
        );
        return { ...written, dropped: request.dropped };
      },
      redact: (text) => upstream.redact(text),
    };
  },
});

type Asked =
  | { readonly failure: ports.ModelAnswer; readonly request?: undefined; readonly answer?: undefined }
  | { readonly failure?: undefined; readonly request: ResponsesRequestBytes; readonly answer: ports.ModelAnswer };

/** Headers that mean the same to every upstream. Those of the Messages protocol have no meaning here. */
const SENT = ["traceparent", "tracestate", "baggage", "user-agent", "x-portico-trail"] as const;

function requestHeaders({ headers }: ports.ModelCall, { isStream }: ResponsesRequestBytes): Record<string, string> {
  return {
    ...Object.fromEntries(SENT.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]))),
    "content-type": "application/json",
    accept: isStream ? "text/event-stream" : "application/json",
    "accept-encoding": "identity",
  };
}

/** Headers that describe the upstream's body or connection. */
const NOT_RETURNED = /^(?:content-.*|transfer-encoding|connection|keep-alive|etag|last-modified|digest|trailer)$/;

function answerHeaders({ headers }: ports.ModelAnswer): ports.ModelAnswer["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_RETURNED.test(name)));
}

function unreadable(error: unknown): ModelError {
  if (!(error instanceof RequestUnreadable)) throw error;
  return { kind: error.isTooLarge ? "too-large" : "invalid-request", message: error.message };
}

/** An event with the caller's name of a tool, and without the upstream's credential and address. */
function forCaller(event: ModelEvent, names: ReadonlyMap<string, string>, upstream: ports.ModelProvider): ModelEvent {
  if (event.type === "tool-start") return { ...event, name: names.get(event.name) ?? event.name };
  if (event.type === "error") return { ...event, error: { ...event.error, message: upstream.redact(event.error.message) } };
  return event;
}

async function* mapped(batches: ModelEvents, shown: (events: readonly ModelEvent[]) => readonly ModelEvent[]): ModelEvents {
  for await (const events of batches) yield shown(events);
}
