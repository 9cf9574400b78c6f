import * as v from "valibot";
import {
  type Envelope,
  type FaultCode,
  faults,
  type Faults,
  findShortage,
  ServiceError,
  SHORTAGE_WORDS,
} from "../grammar/error.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { guardCall, isThenable } from "../grammar/guard-call.ts";
import { isStoreUnavailable } from "../kit/store-calls.ts";
import type { RequestTrace, Telemetry } from "../ports/telemetry.ts";
import type { Events, Guard, RequestHead, RouteContract, Schema } from "../grammar/contract.ts";
import { BodyCut, BodySilent, BodyTooLarge } from "./body.ts";
import type { EventStreams } from "./event-pieces.ts";
import { idHeaders, NO_SNIFFING, type RequestIds } from "./answer-headers.ts";

/** Default limit of a JSON body in bytes. */
const BODY_LIMIT = 1024 * 1024;
export interface SurfaceServices {
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly streams: EventStreams;
  /** Told of each call that is refused with 401. */
  readonly refused?: ((surface: string, head: RequestHead) => void) | undefined;
}

/** A contract's route with its plugin's handler. */
export interface InstalledRoute {
  /** `plugin.contractKey`. */
  readonly key: string;
  readonly area: string;
  readonly contract: RouteContract;
  readonly guard: Guard | undefined;
  readonly handler: (input: never) => unknown;
  /** Made once per route, not per request. */
  readonly say: Readonly<Record<string, unknown>>;
}

/** All routes of one path. Without routes, it handles unmatched requests. */
export interface PathRoutes {
  readonly path: string;
  readonly surface: string;
  readonly methods: Map<string, InstalledRoute>;
  envelope?: Envelope | undefined;
  faults?: Faults | undefined;
}

export interface Admitted {
  readonly route: InstalledRoute;
  readonly who: unknown;
}

/** All refusals that need only the head, in this order: credential, method, media type, encoding, declared size. */
export async function admit(routes: PathRoutes, head: RequestHead, signal: AbortSignal): Promise<Admitted> {
  const own = routeFor(routes, head.method);
  const asked = own ?? firstRoute(routes);
  if (!asked) throw fault(routes.faults, "not_found");
  const who = await asked.guard?.(head, signal);
  const { contract } = asked;
  if (!own) throw fault(contract.faults, "method_not_allowed", { headers: { allow: allowedMethods(routes).join(", ") } });
  if (!takesBody(contract)) return { route: own, who };
  if (!hasMediaType(head.header("content-type"), accepted(contract)) && !isOptionalBodyAbsent(contract, head)) {
    throw fault(contract.faults, "unsupported_media_type");
  }
  // Handlers that get the stream or the exchange read the header themselves.
  const isRead = contract.bodyAs !== "stream" && contract.success.kind !== "exchange";
  if (isRead && isEncoded(head)) {
    const message = "Bodies with a Content-Encoding are not read here: send the body without compression";
    throw fault(contract.faults, "unsupported_media_type", { message, headers: { "accept-encoding": "identity" } });
  }
  const length = Number(head.header("content-length") ?? 0);
  if (length > bodyLimit(contract)) throw fault(contract.faults, "body_too_large");
  return { route: own, who };
}

/** The GET route answers HEAD, without the body (RFC 9110, 9.3.2). */
export function routeFor(routes: PathRoutes, method: string): InstalledRoute | undefined {
  return routes.methods.get(method) ?? (method === "HEAD" ? routes.methods.get("GET") : undefined);
}

export function firstRoute(routes: PathRoutes): InstalledRoute | undefined {
  return routes.methods.values().next().value;
}

export function bodyLimit(contract: RouteContract): number {
  return contract.bodyLimit ?? BODY_LIMIT;
}

export function takesBody(contract: RouteContract): boolean {
  return contract.body !== undefined || contract.accepts !== undefined || contract.bodyAs === "stream";
}

/** The media types that a route's body may have. */
export function accepted(contract: RouteContract): readonly string[] {
  return contract.accepts ?? ["application/json"];
}

/** Parse one part of the request with its declared schema. An invalid value is the area's `invalid_request`. */
export function parse(schema: Schema | undefined, value: unknown, own: Faults | undefined): unknown {
  if (!schema) return undefined;
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw fault(own, "invalid_request", { details: { issues: result.issues.map(describeIssue) } });
}

export function fault(
  own: Faults | undefined,
  code: FaultCode,
  options: ConstructorParameters<typeof ServiceError>[1] = {},
): ServiceError {
  return new ServiceError(own?.[code] ?? faults[code], options);
}

/** Errors of reading a body, as the area's own errors. Any other error is returned unchanged. */
export function bodyError(error: unknown, own: Faults | undefined): unknown {
  if (error instanceof BodyTooLarge) return fault(own, "body_too_large", { cause: error });
  if (error instanceof BodySilent) return fault(own, "request_timeout", { cause: error });
  if (error instanceof BodyCut) return fault(own, "invalid_request", { message: error.message, cause: error });
  return error;
}

export interface Rendered {
  readonly error: ServiceError;
  readonly status: number;
  readonly headers: Record<string, string | readonly string[]>;
  readonly body: string;
}

/** An error in the form of its area. Unknown errors are logged with the request's ID and shown as `internal_error`. */
export function render(
  thrown: unknown,
  routes: PathRoutes,
  route: InstalledRoute | undefined,
  head: RequestHead,
  services: SurfaceServices,
  ids: RequestIds,
): Rendered {
  const contract = (route ?? routeFor(routes, head.method) ?? firstRoute(routes))?.contract;
  const own = contract?.faults ?? routes.faults;
  const isDeclared = ServiceError.is(thrown);
  const error = isDeclared ? asShortage(thrown) : undeclared(thrown, own);
  const where = route?.key ?? routes.surface;
  if (!isDeclared || (error.status >= 500 && error.cause !== undefined)) {
    services.telemetry.log.error(`${where} failed: ${error.code}`, { request: ids.own }, error.cause);
  }
  const body = enveloped(error, contract?.envelope ?? routes.envelope ?? plainEnvelope, head, (cause) =>
    services.telemetry.log.error(`${where} has an envelope that failed`, { request: ids.own }, cause),
  );
  return {
    error,
    status: error.status,
    headers: {
      ...error.headers,
      ...NO_SNIFFING,
      "content-type": "application/json; charset=utf-8",
      "content-length": String(Buffer.byteLength(body)),
      ...idHeaders(ids),
    },
    body,
  };
}

/**
 * An error that no route declares. A shortage of the machine and a store that cannot be reached are not defects of the code: the answer names
 * them, unless the area has an `internal_error` of its own.
 */
function undeclared(thrown: unknown, own: Faults | undefined): ServiceError {
  const temporary = findShortage(thrown) ?? (isStoreUnavailable(thrown) ? "store_unavailable" : undefined);
  const code = temporary === undefined || (own?.internal_error && !own[temporary]) ? "internal_error" : temporary;
  return asShortage(fault(own, code, { cause: thrown }));
}

/** A 500 that a shortage caused is temporary: 503, with the area's code and the name of the shortage. */
function asShortage(error: ServiceError): ServiceError {
  const shortage = error.status === 500 ? findShortage(error.cause) : undefined;
  if (!shortage) return error;
  const { code, details, headers, cause } = error;
  return new ServiceError({ code, status: 503 }, { message: SHORTAGE_WORDS[shortage], details, headers, cause });
}

/** A failure of the envelope itself must not leave the caller without an answer. */
function enveloped(error: ServiceError, envelope: Envelope, head: RequestHead, failed: (cause: unknown) => void): string {
  try {
    const body = envelope(error, head) ?? null;
    guardCall(
      () => body,
      () => {},
    );
    const text = isThenable(body) ? undefined : (JSON.stringify(body) as string | undefined);
    if (text === undefined) throw new TypeError("An envelope returns a value that JSON can represent");
    return text;
  } catch (cause) {
    failed(cause);
    return JSON.stringify({ error: error.code });
  }
}

export function begin(
  routes: PathRoutes,
  head: RequestHead,
  scheme: "http" | "https",
  ids: RequestIds,
  telemetry: Telemetry,
): RequestTrace {
  const route = routeFor(routes, head.method) ?? firstRoute(routes);
  return telemetry.begin({
    id: ids.own,
    callerRequestId: ids.ofCaller,
    area: route?.area ?? routes.surface,
    route: route?.key ?? "unmatched",
    method: head.method,
    path: routes.path,
    scheme,
    header: (name) => head.header(name),
  });
}

export function sayings(events: Events): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.keys(events).map((event) => [event, (data: unknown) => ({ event, data })]));
}

/** The error body on a surface without a contract. */
const plainEnvelope: Envelope = (error) => ({ error: error.code, message: error.message });

function allowedMethods(routes: PathRoutes): string[] {
  const methods = [...routes.methods.keys()];
  return methods.includes("GET") ? [...methods, "HEAD"] : methods;
}

function isEncoded(head: RequestHead): boolean {
  const encoding = head.header("content-encoding")?.trim().toLowerCase() ?? "";
  return encoding !== "" && encoding !== "identity";
}

/** A JSON body whose schema accepts `undefined` may be left out. It then has no media type either. */
function isOptionalBodyAbsent(contract: RouteContract, head: RequestHead): boolean {
  const isAbsent = head.header("transfer-encoding") === undefined && Number(head.header("content-length") ?? 0) === 0;
  return isAbsent && contract.body !== undefined && v.is(contract.body, undefined);
}

function describeIssue(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue);
  // `received` quotes the caller's input. Only the expected value is sent back.
  return `${path ?? "(body)"}: expected ${issue.expected ?? "another value"}`;
}

/** Whether a Content-Type header names one of the accepted media types. Parameters such as `charset` are ignored. */
export function hasMediaType(contentType: string | undefined, accepted: readonly string[]): boolean {
  if (contentType === undefined) return false;
  const end = contentType.indexOf(";");
  const essence = (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  return accepted.includes(essence);
}
