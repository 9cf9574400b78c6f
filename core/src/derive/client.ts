import { createFetch } from "ofetch";
import type { InferInput } from "valibot";
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { Contract, EventOf, Events, RouteContract, Schema } from "../grammar/contract.ts";
import { type ErrorCatalogue, type ErrorMaker, type FaultCode, faults, ServiceError } from "../grammar/error.ts";

export { parseJson } from "../kit/parse-json.ts";

/** Options of a client. */
export interface ClientOptions {
  /** Base URL of the surface, for example `http://127.0.0.1:49154`. */
  readonly baseURL: string;
  /** Headers of every call, usually the credential. A function is called before each call. */
  readonly headers?: CallHeaders | (() => CallHeaders | Promise<CallHeaders>);
  /** Replaces the platform's `fetch`, for example with the `fetch` of an app in the same process. */
  readonly fetch?: (request: Request) => Response | Promise<Response>;
}

/** Headers of a call, by name. */
export type CallHeaders = Readonly<Record<string, string>>;

/** One method per route of the contract. */
export type Client<C extends Contract> = { readonly [K in keyof C]: Call<C[K]> };

/** Takes the inputs that the route's schemas require. Rejects with CallFailed when the service answers with an error. */
export type Call<C extends RouteContract> =
  {} extends CallInput<C> ? (input?: CallInput<C>) => Promise<CallResult<C>> : (input: CallInput<C>) => Promise<CallResult<C>>;

/** The input of a call: the parts that the route's schemas require, and optional headers and signal. */
export type CallInput<C extends RouteContract> = Part<"params", C["params"]> &
  Part<"query", C["query"]> &
  Body<C> & { readonly headers?: CallHeaders; readonly signal?: AbortSignal };

/** The result of a call. Routes that answer bytes give the whole Response. */
export type CallResult<C extends RouteContract> = C["success"] extends { kind: "events"; events: infer E extends Events }
  ? AsyncIterable<EventOf<E>>
  : C["success"] extends { kind: "json"; schema: infer S extends Schema }
    ? InferInput<S>
    : C["success"] extends { kind: "empty" }
      ? undefined
      : Response;

type Part<K extends string, S> = S extends Schema ? Optional<K, InferInput<S>> : {};
/** A part is optional if it may be undefined, or if all its fields are optional. */
type Optional<K extends string, T> = {} extends T
  ? { readonly [P in K]?: T }
  : undefined extends T
    ? { readonly [P in K]?: T }
    : { readonly [P in K]: T };
/** The body of a route with another media type than JSON is any body that `fetch` accepts. */
type Body<C extends RouteContract> = C["body"] extends Schema
  ? Part<"body", C["body"]>
  : C["accepts"] extends readonly string[]
    ? { readonly body: BodyInit }
    : {};

interface AnyInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly headers?: CallHeaders;
  readonly signal?: AbortSignal;
}

/** A typed client of one contract. It does not retry, does not cache, and trusts the declared types of answers. */
export function createClient<C extends Contract>(contract: C, options: ClientOptions): Client<C> {
  const send = createFetch({ fetch: fetchOf(options), Headers, AbortController }).raw;
  const call = async (route: RouteContract, input: AnyInput): Promise<unknown> => {
    const given = typeof options.headers === "function" ? await options.headers() : options.headers;
    const isJson = route.body !== undefined && input.body !== undefined;
    const response = await send(pathOf(route.path, input.params ?? {}), {
      baseURL: options.baseURL,
      method: route.method,
      query: input.query as Record<string, unknown>,
      headers: { ...(isJson && { "content-type": "application/json" }), ...given, ...input.headers },
      body: isJson ? JSON.stringify(input.body) : (input.body as BodyInit | undefined),
      signal: input.signal as AbortSignal,
      responseType: "stream",
      ignoreResponseError: true,
      retry: 0,
    });
    if (!response.ok) throw await callFailed(route, response);
    return resultOf(route, response);
  };
  return Object.fromEntries(
    Object.entries(contract).map(([key, route]) => [key, (input: AnyInput = {}) => call(route, input)]),
  ) as unknown as Client<C>;
}

async function resultOf(route: RouteContract, response: Response): Promise<unknown> {
  switch (route.success.kind) {
    case "json":
      return response.json();
    case "empty":
      await response.body?.cancel();
      return undefined;
    case "events":
      return readEvents(route, response, route.success.events);
    default:
      return response;
  }
}

function fetchOf(options: ClientOptions): typeof fetch {
  const { fetch: own } = options;
  if (!own) return (input, init) => globalThis.fetch(input, init);
  return async (input, init) => {
    const request = new Request(input, init);
    // An in-process function may ignore the signal. The call rejects after an abort in any case.
    request.signal.throwIfAborted();
    const response = await own(request);
    request.signal.throwIfAborted();
    return response;
  };
}

/** Throws a TypeError for a value that would change the path: URLs resolve `..` to the parent, also in escaped form. */
function pathOf(template: string, params: Readonly<Record<string, unknown>>): string {
  return template.replaceAll(/:(\w+)/g, (_match, name: string) => {
    const value = String(params[name] ?? "");
    if (value === "" || value === "." || value === "..") throw new TypeError(`Parameter "${name}" cannot be a segment of a path`);
    return encodeURIComponent(value);
  });
}

/** Whether an error is a failed call, with the codes of one route. */
export function isCallFailed<C extends RouteContract>(error: unknown, _route: C): error is CallFailed<CallCode<C>> {
  return CallFailed.is(error);
}

/** The codes that a route can fail with, for `switch (error.code)`: its own codes, those of the request grammar, and `unknown` for any other answer. */
export type CallCode<C extends RouteContract> =
  | (C["errors"] extends ErrorCatalogue ? keyof C["errors"] & string : never)
  | FaultCode
  | "unknown";

/** The service answered with an error. */
export class CallFailed<Code extends string = string> extends Error {
  override readonly name = "CallFailed";
  readonly status: number;
  readonly code: Code;
  /** The body of the error answer: parsed if it is JSON, otherwise its text. */
  readonly body: unknown;
  readonly headers: Headers;

  constructor(status: number, code: Code, body: unknown, headers: Headers) {
    super(`The call failed: ${code} (${status})`);
    this.status = status;
    this.code = code;
    this.body = body;
    this.headers = headers;
  }

  /** Recognised by name, so that it works across duplicate copies of this package. */
  static is(value: unknown): value is CallFailed {
    return value instanceof Error && value.name === "CallFailed" && "code" in value && "status" in value;
  }
}

/** Turns an error answer into the error that the caller catches. */
async function callFailed(route: RouteContract, response: Response): Promise<CallFailed> {
  const text = await response.text();
  return failureOf(route, response.status, parsed(text), response.headers);
}

/** The same for a body that was already read: the last event of a broken stream. */
function failureOf(route: RouteContract, status: number, body: unknown, headers: Headers): CallFailed {
  return new CallFailed(status, codeOf(route, status, body), body, headers);
}

/**
 * Areas have different error envelopes. The code is in the body, or is found by rendering each known error with the route's
 * envelope.
 */
function codeOf(route: RouteContract, status: number, body: unknown): string {
  const known: ErrorMaker[] = [...Object.values(route.errors ?? {}), ...Object.values({ ...faults, ...route.faults })];
  const told = wordsOf(body);
  const byWord = known.find((each) => told.includes(each.code));
  if (byWord) return byWord.code;
  const text = JSON.stringify(body);
  const at = { method: route.method, path: route.path };
  // In a stream, the status is that of the head, which was sent before the error.
  const rendered = known.filter((each) => status < 400 || each.status === status);
  return rendered.find((each) => JSON.stringify(route.envelope(new ServiceError(each), at)) === text)?.code ?? "unknown";
}

function wordsOf(body: unknown): unknown[] {
  const { error, code } = (typeof body === "object" && body !== null ? body : {}) as { error?: unknown; code?: unknown };
  const { code: inner, type } = (typeof error === "object" && error !== null ? error : {}) as { code?: unknown; type?: unknown };
  return [code, error, inner, type];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * The declared events of a stream, read one by one. Leaving the loop ends the connection. Undeclared events are ignored, so that
 * a service can add new ones. Throws CallFailed on the final event `error` of a broken source, and the connection's error when it
 * is cut.
 */
async function* readEvents<E extends Events>(
  route: RouteContract,
  response: Response,
  events: E,
): AsyncGenerator<EventOf<E>, void> {
  if (!response.body) return;
  // The stream types of the platform and of the library differ only in details that are unused here.
  const text = response.body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>);
  const reader = text.pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const { event = "message", data, id } = next.value;
      const identified = id !== undefined && { id };
      if (Object.hasOwn(events, event)) yield { event, data: JSON.parse(data), ...identified } as EventOf<E>;
      else if (event === "error") throw failureOf(route, response.status, JSON.parse(data), response.headers);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
