import type { Readable, Writable } from "node:stream";
import type { GenericSchema, InferInput, InferOutput } from "valibot";
import type { Envelope, ErrorCatalogue, Faults } from "./error.ts";
import type { JsonPieces } from "../http/pieces.ts";
import type { StreamedBody } from "../http/streamed-body.ts";
import type { RequestTrace } from "../ports/telemetry.ts";

export type Schema = GenericSchema<any, any>;

/** The public description of one endpoint. Pure data: no handler, no server import. */
export interface RouteContract extends ContractDefaults {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` matches one segment. */
  readonly path: `/${string}`;
  readonly summary: string;
  readonly params?: Schema;
  /**
   * Schema of single values. A parameter that occurs twice is an array of strings, which the schema accepts or refuses. Without a schema, all
   * parameters are ignored. `readParameters` makes a schema that refuses unknown ones.
   */
  readonly query?: Schema;
  /** A JSON body. Exchange routes read their body themselves and declare it for the documents only. */
  readonly body?: Schema;
  /**
   * The form in which the handler gets its `body`. `json` (default): parsed with the schema. `text`: the body's text, unchanged;
   * `""` without a body, and undefined for invalid UTF-8. It is for areas that must check more than the head before they report
   * an error of the body; `parseJsonBody` does the rest.
   * `stream`: a StreamedBody, for uploads. Only the head was checked, `body` may be left out, and `accepts` names the media
   * types.
   */
  readonly bodyAs?: "json" | "text" | "stream";
  /** Accepted media types of the body. Default: `application/json` if there is a body. */
  readonly accepts?: readonly string[];
  /** Bytes; default 1 MiB. */
  readonly bodyLimit?: number;
  /** For the documents: the route's handler respects the header `Prefer: wait=SECONDS`, with `preferredWait` of `@portico/core/kit`. */
  readonly waits?: true;
  /** For the documents: the route's handler respects the header `Idempotency-Key`, with `idempotencyKeyOf` of `@portico/core/kit`. */
  readonly takesKey?: true;
  readonly success: Success;
  readonly errors?: ErrorCatalogue;
}

/** Properties that all routes of one contract share. A route may override each. */
export interface ContractDefaults {
  /** The surface of the route: `proxy`, `workflow`, `agent`, or a third party's own. */
  readonly surface: string;
  /** Names one of the plugin's guards. No default on purpose: `"open"` must be written down. */
  readonly auth: string;
  readonly envelope: Envelope;
  readonly faults?: Faults;
  /**
   * How requests of pages of other origins are handled. Default: as the surface's `otherOrigins` says. `answered` answers them without CORS
   * headers. It is for routes whose path contains the credential: a page that does not know it can do nothing, and browsers send `Origin: null`
   * from pages that must not tell their address.
   */
  readonly otherOrigins?: "answered";
}

export type Success =
  | { readonly kind: "json"; readonly status: number; readonly schema: Schema }
  | { readonly kind: "empty"; readonly status: 204 }
  | { readonly kind: "events"; readonly status: 200; readonly events: Events }
  | { readonly kind: "bytes"; readonly status: number }
  | { readonly kind: "exchange"; readonly status: number; readonly mediaTypes: readonly string[] };

export type Events = Readonly<Record<string, Schema>>;

/** The kinds of successful answers of a route. */
export const reply = {
  /** The handler returns the value, or `JsonPieces` of it; it is sent as JSON. */
  json: <S extends Schema>(schema: S, status = 200) => ({ kind: "json", status, schema }) as const,
  /** The handler returns nothing: 204. */
  empty: () => ({ kind: "empty", status: 204 }) as const,
  /**
   * The handler yields events. They are sent as server-sent events; after 15 seconds of silence, a comment that readers ignore is
   * sent. When the service stops, the stream ends and `signal` aborts. An error before the handler returns its iterable is an
   * ordinary error answer. A later error of the iterable is sent as an event `error`, in the contract's envelope, and then the
   * stream breaks.
   */
  events: <E extends Events>(events: E) => ({ kind: "events", status: 200, events }) as const,
  /** The handler returns a `Response`. */
  bytes: (status = 200) => ({ kind: "bytes", status }) as const,
  /** The handler reads the body and writes the answer itself, directly as streams. For routes that transfer bytes fast. */
  exchange: (mediaTypes: readonly string[], status = 200) => ({ kind: "exchange", status, mediaTypes }) as const,
};

type RouteBody = Omit<RouteContract, keyof ContractDefaults> & Partial<ContractDefaults>;

/** Declare the public routes of an area. Routes inherit surface, auth, envelope and faults from `defaults`. */
export function defineContract<const D extends ContractDefaults, const R extends Readonly<Record<string, RouteBody>>>(
  defaults: D,
  routes: R,
): { readonly [K in keyof R]: Omit<D, keyof R[K]> & R[K] } {
  return Object.fromEntries(Object.entries(routes).map(([key, route]) => [key, { ...defaults, ...route }])) as never;
}

/** Routes by their keys. */
export type Contract = Readonly<Record<string, RouteContract>>;

/** The input of a guard: the head of a request, which is available without waiting. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  /** `""` or with its leading `?`. */
  readonly search: string;
  readonly params: Readonly<Record<string, string>>;
  /** The address that the connection comes from: the caller's, or a proxy's. Undefined if the host does not tell. */
  readonly address?: string | undefined;
  /** By lowercase name. A header that occurs several times is joined with `, `. */
  header(name: string): string | undefined;
}

/** Reads one credential and returns its holder, or throws one of the area's errors. */
export type Guard<W = unknown> = (head: RequestHead, signal: AbortSignal) => W | Promise<W>;
export type Guards = Readonly<Record<string, Guard>>;

/** The caller as the guard of this route returned it; undefined on open routes. */
export type Who<G extends Guards, C extends RouteContract> = C["auth"] extends "open"
  ? undefined
  : C["auth"] extends keyof G
    ? Awaited<ReturnType<G[C["auth"]]>>
    : undefined;

/** One request and its answer as Node streams. */
export interface Exchange {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Readable;
  /** Send the head. Write the body to the returned stream, and end it. Throws when called twice. */
  respond(status: number, headers: Readonly<Record<string, string | readonly string[]>>): Writable;
}

type Out<S> = S extends Schema ? InferOutput<S> : undefined;

/** The input of a handler: the request, parsed by the route's contract. */
export interface RouteInput<C extends RouteContract, W = unknown> {
  readonly params: Out<C["params"]>;
  readonly query: Out<C["query"]>;
  /** Parsed, or text or a stream if the contract's `bodyAs` says so. Undefined on exchange routes, which read `exchange.body`. */
  readonly body: C["success"] extends { kind: "exchange" }
    ? undefined
    : C extends { bodyAs: "stream" }
      ? StreamedBody
      : C extends { bodyAs: "text"; body: Schema }
        ? string | undefined
        : Out<C["body"]>;
  readonly head: RequestHead;
  readonly who: W;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
  /** Aborts when the server stops: a handler that waits for something answers at once with what there is. See `preferredWait`. */
  readonly stopping: AbortSignal;
  /** Headers that a successful answer has besides its own, by lowercase name. The handler may add some, except on exchange routes. */
  readonly answerHeaders: Record<string, string>;
  /** Adds facts to the request's log line and span. */
  readonly trace: RequestTrace;
  /** The errors that the contract of this route declares. It may throw no others. */
  readonly fail: C["errors"] extends ErrorCatalogue ? C["errors"] : {};
  /** The events that the contract of this route declares. It may send no others. */
  readonly say: C["success"] extends { kind: "events"; events: infer E extends Events } ? Say<E> : {};
  /** The whole request, on `bytes` routes. */
  readonly request: C["success"] extends { kind: "bytes" } ? Request : undefined;
  readonly exchange: C["success"] extends { kind: "exchange" } ? Exchange : undefined;
}

/** One event of a stream: its name, with data for its schema. */
export type EventOf<E extends Events> = {
  [K in keyof E & string]: {
    readonly event: K;
    readonly data: InferInput<E[K]>;
    /** A reader that connects again sends the last id in the header `Last-Event-ID`. It may not contain line breaks. */
    readonly id?: string | undefined;
  };
}[keyof E & string];
/** Tells readers of a stream how long they wait before they connect again, in milliseconds. It is not an event. */
export interface ReconnectTime {
  readonly retryMs: number;
}
/** Makes the events of a stream: one function per name. */
export type Say<E extends Events> = {
  readonly [K in keyof E & string]: (data: InferInput<E[K]>) => { readonly event: K; readonly data: InferInput<E[K]> };
};

/** The return type of a handler, by its route's `success`. */
export type RouteResult<C extends RouteContract> = C["success"] extends { kind: "events"; events: infer E extends Events }
  ? AsyncIterable<EventOf<E> | ReconnectTime> | Promise<AsyncIterable<EventOf<E> | ReconnectTime>>
  : C["success"] extends { kind: "json"; schema: infer S extends Schema }
    ? InferInput<S> | JsonPieces | Promise<InferInput<S> | JsonPieces>
    : C["success"] extends { kind: "bytes" }
      ? Response | Promise<Response>
      : void | Promise<void>;

/** Answers one route. `W` is the result type of the route's guard. */
export type Handler<C extends RouteContract, W = unknown> = (input: RouteInput<C, W>) => RouteResult<C>;

/** One handler per contract key. A missing or misspelled key does not compile. */
export type Handlers<C extends Contract, G extends Guards = {}> = { readonly [K in keyof C]: Handler<C[K], Who<G, C[K]>> };
