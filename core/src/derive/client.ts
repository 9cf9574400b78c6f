import { createFetch } from "ofetch";
import type { InferInput } from "valibot";
import type { Contract, EventOf, Events, RouteContract, Schema } from "../route.ts";
import { type CallCode, CallFailed, callFailed } from "./call-failed.ts";
import { readEvents } from "./read-events.ts";

export { CallFailed } from "./call-failed.ts";
export { parseJson } from "../parse-json.ts";

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

/** The codes that a call of this route can fail with, for `switch (error.code)`. */
export type CodeOf<C extends RouteContract> = CallCode<C>;

/** Whether an error is a failed call, with the codes of one route. */
export function isCallFailed<C extends RouteContract>(error: unknown, _route: C): error is CallFailed<CodeOf<C>> {
  return CallFailed.is(error);
}
