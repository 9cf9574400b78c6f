import type { Readable, Writable } from "node:stream";
import type { GenericSchema, InferInput, InferOutput } from "valibot";
import type { Envelope, ErrorCatalogue, Faults } from "./error.ts";
import type { JsonPieces } from "./http/json-pieces.ts";
import type { StreamedBody } from "./http/streamed-body.ts";
import type { RequestTrace } from "./ports/telemetry.ts";

export type Schema = GenericSchema<any, any>;

/** Everything the outside may know about one endpoint. Pure data: no handler, no server import. */
export interface RouteContract extends ContractDefaults {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` takes one segment. */
  readonly path: `/${string}`;
  readonly summary: string;
  readonly params?: Schema;
  /** Of single values; a parameter that comes twice is an array of strings for the schema to refuse or take. */
  readonly query?: Schema;
  /** A JSON body. Exchange routes read their body themselves and declare it for the documents only. */
  readonly body?: Schema;
  /**
   * What the handler gets of its `body`; default `json`: parsed with the schema. With `text` the body's text as it came, `""` where there is
   * none and undefined where it is no UTF-8, for areas that must look at more than the head before anybody is told what is wrong with the
   * body; `parseJsonBody` does the rest.
   * With `stream` a StreamedBody, for uploads: only the head was looked at, `body` may be left out, and `accepts` names the media types.
   */
  readonly bodyAs?: "json" | "text" | "stream";
  /** Accepted media types of the body; default: `application/json` where there is a body. */
  readonly accepts?: readonly string[];
  /** Bytes; default 1 MiB. */
  readonly bodyLimit?: number;
  readonly success: Success;
  readonly errors?: ErrorCatalogue;
}

/** What all routes of one contract share; a route may override each. */
export interface ContractDefaults {
  /** The address the route stands on: `proxy`, `workflow`, `agent`, or one of a third party's own. */
  readonly surface: string;
  /** Names one of the plugin's guards. No default on purpose: `"open"` must be written down. */
  readonly auth: string;
  readonly envelope: Envelope;
  readonly faults?: Faults;
}

export type Success =
  | { readonly kind: "json"; readonly status: number; readonly schema: Schema }
  | { readonly kind: "empty"; readonly status: 204 }
  | { readonly kind: "events"; readonly status: 200; readonly events: Events }
  | { readonly kind: "bytes"; readonly status: number }
  | { readonly kind: "exchange"; readonly status: number; readonly mediaTypes: readonly string[] };

export type Events = Readonly<Record<string, Schema>>;

/** What a route answers when all went well. */
export const reply = {
  /** The handler returns the value, or `JsonPieces` of it; it is sent as JSON. */
  json: <S extends Schema>(schema: S, status = 200) => ({ kind: "json", status, schema }) as const,
  /** The handler returns nothing: 204. */
  empty: () => ({ kind: "empty", status: 204 }) as const,
  /**
   * The handler yields events; they are sent as server-sent events, and after 15 seconds of silence a comment that readers pass over. When
   * the service stops, the stream ends and `signal` aborts. What it throws before it returns its iterable is an ordinary error
   * answer; what the iterable throws later is sent as an event `error`, in the contract's envelope, and then the stream breaks.
   */
  events: <E extends Events>(events: E) => ({ kind: "events", status: 200, events }) as const,
  /** The handler returns a `Response`. */
  bytes: (status = 200) => ({ kind: "bytes", status }) as const,
  /** The handler reads the body and writes the answer itself, as streams, with nothing in between: for routes that move bytes fast. */
  exchange: (mediaTypes: readonly string[], status = 200) => ({ kind: "exchange", status, mediaTypes }) as const,
};

type RouteBody = Omit<RouteContract, keyof ContractDefaults> & Partial<ContractDefaults>;

/** Declare what an area offers to the outside. Routes take surface, auth, envelope and faults from `defaults`. */
export function defineContract<const D extends ContractDefaults, const R extends Readonly<Record<string, RouteBody>>>(
  defaults: D,
  routes: R,
): { readonly [K in keyof R]: Omit<D, keyof R[K]> & R[K] } {
  return Object.fromEntries(Object.entries(routes).map(([key, route]) => [key, { ...defaults, ...route }])) as never;
}

export type Contract = Readonly<Record<string, RouteContract>>;

/** What a guard may look at: the head of a request, and nothing that would have to be waited for. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  /** `""` or with its leading `?`. */
  readonly search: string;
  readonly params: Readonly<Record<string, string>>;
  /** By lowercase name; a header that came several times is joined with `, `. */
  header(name: string): string | undefined;
}

/** Reads one credential and answers who holds it, or throws one of the area's errors. */
export type Guard<W = unknown> = (head: RequestHead, signal: AbortSignal) => W | Promise<W>;
export type Guards = Readonly<Record<string, Guard>>;

/** Whom the guard of this route let in; undefined on open routes. */
export type Who<G extends Guards, C extends RouteContract> = C["auth"] extends "open"
  ? undefined
  : C["auth"] extends keyof G
    ? Awaited<ReturnType<G[C["auth"]]>>
    : undefined;

/** One request and its answer as Node streams. */
export interface Exchange {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Readable;
  /** Send the head; what is returned takes the body and must be ended. Throws when called twice. */
  respond(status: number, headers: Readonly<Record<string, string | readonly string[]>>): Writable;
}

type Out<S> = S extends Schema ? InferOutput<S> : undefined;

export interface RouteInput<C extends RouteContract, W = unknown> {
  readonly params: Out<C["params"]>;
  readonly query: Out<C["query"]>;
  /** Parsed, or text or a stream where the contract's `bodyAs` says so; undefined on exchange routes, which read `exchange.body`. */
  readonly body: C["success"] extends { kind: "exchange" }
    ? undefined
    : C extends { bodyAs: "stream" }
      ? StreamedBody
      : C extends { bodyAs: "text"; body: Schema }
        ? string | undefined
        : Out<C["body"]>;
  readonly head: RequestHead;
  readonly who: W;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
  /** Where the handler notes what the request's log line and span should say. */
  readonly trace: RequestTrace;
  /** The only errors this route may throw: those its contract declares. */
  readonly fail: C["errors"] extends ErrorCatalogue ? C["errors"] : {};
  /** The only events this route may send: those its contract declares. */
  readonly say: C["success"] extends { kind: "events"; events: infer E extends Events } ? Say<E> : {};
  /** The whole request, on `bytes` routes. */
  readonly request: C["success"] extends { kind: "bytes" } ? Request : undefined;
  readonly exchange: C["success"] extends { kind: "exchange" } ? Exchange : undefined;
}

export type EventOf<E extends Events> = {
  [K in keyof E & string]: { readonly event: K; readonly data: InferInput<E[K]> };
}[keyof E & string];
export type Say<E extends Events> = {
  readonly [K in keyof E & string]: (data: InferInput<E[K]>) => { readonly event: K; readonly data: InferInput<E[K]> };
};

export type RouteResult<C extends RouteContract> = C["success"] extends { kind: "events"; events: infer E extends Events }
  ? AsyncIterable<EventOf<E>> | Promise<AsyncIterable<EventOf<E>>>
  : C["success"] extends { kind: "json"; schema: infer S extends Schema }
    ? InferInput<S> | JsonPieces | Promise<InferInput<S> | JsonPieces>
    : C["success"] extends { kind: "bytes" }
      ? Response | Promise<Response>
      : void | Promise<void>;

export type Handler<C extends RouteContract, W = unknown> = (input: RouteInput<C, W>) => RouteResult<C>;

/** One handler per contract key; a missing or misspelt key does not compile. */
export type Handlers<C extends Contract, G extends Guards = {}> = { readonly [K in keyof C]: Handler<C[K], Who<G, C[K]>> };
