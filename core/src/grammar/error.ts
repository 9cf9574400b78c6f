/** A resource that a machine can run out of. */
export type Shortage = "storage_full" | "too_many_open_files";

/** By the error codes of the system, SQLite (`errcode`) and PostgreSQL. */
const SHORTAGES: ReadonlyMap<unknown, Shortage> = new Map([
  ...["ENOSPC", "EDQUOT", "EFBIG", "53100"].map((code) => [code, "storage_full"] as const),
  // Node.js uses the last code if it loads a module for the first time during the shortage.
  ...["EMFILE", "ENFILE", "ERR_INVALID_PACKAGE_CONFIG"].map((code) => [code, "too_many_open_files"] as const),
]);
const SQLITE_FULL = 13;
/** Limits a circle of causes. Real chains are short. */
const DEPTH = 10;

/** The shortage that an error reports, or that caused it. Undefined for other errors. */
export function findShortage(error: unknown): Shortage | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth < DEPTH; each = each.cause, depth++) {
    const found = SHORTAGES.get((each as NodeJS.ErrnoException).code);
    if (found) return found;
    if ("errcode" in each && Number(each.errcode) === SQLITE_FULL) return "storage_full";
  }
  return undefined;
}

/** Descriptions for people. */
export const SHORTAGE_WORDS: Readonly<Record<Shortage, string>> = {
  storage_full: "The disk is full",
  too_many_open_files: "Too many files are open",
};

/** An error of the service, with code and message. The envelope decides its form on the wire. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: string;
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;
  /** Response headers that belong to this error, for example `allow` or `retry-after`. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;

  constructor(spec: ErrorSpec, options: ServiceErrorOptions = {}) {
    super(options.message ?? spec.message ?? spec.code, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = spec.code;
    this.status = spec.status;
    this.details = { ...spec.details, ...options.details };
    this.headers = options.headers ?? {};
  }

  /** Recognised by name, so that it works across duplicate copies of this package, where `instanceof` does not. */
  static is(value: unknown): value is ServiceError {
    return value instanceof Error && value.name === "ServiceError" && "code" in value && "status" in value;
  }
}

/** What a ServiceError can carry beside its code and status; `cause` is logged and never sent. */
export interface ServiceErrorOptions {
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly cause?: unknown;
}

export interface ErrorSpec {
  readonly code: string;
  /** HTTP status, 400-599. */
  readonly status: number;
  /** What the caller reads; default: the code. */
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Makes one declared error: `throw fail.guest_unknown()`. */
export interface ErrorMaker extends ErrorSpec {
  (message?: string, details?: Readonly<Record<string, unknown>>, cause?: unknown): ServiceError;
}

export type ErrorCatalogue = Readonly<Record<string, ErrorMaker>>;

/** Turn a table of codes into throwable makers. The table is also the documentation. */
export function defineErrors<const T extends Readonly<Record<string, Omit<ErrorSpec, "code">>>>(
  table: T,
): { readonly [K in keyof T]: ErrorMaker } {
  const entries = Object.entries(table).map(([code, rest]) => {
    const spec: ErrorSpec = { code, ...rest };
    if (!Number.isInteger(spec.status) || spec.status < 400 || spec.status > 599) {
      throw new RangeError(`Error "${code}" has status ${spec.status}; an error's status is 400-599`);
    }
    const make = (message?: string, details?: Readonly<Record<string, unknown>>, cause?: unknown) =>
      new ServiceError(spec, { ...(message !== undefined && { message }), ...(details && { details }), cause });
    return [code, Object.assign(make, spec)] as const;
  });
  return Object.fromEntries(entries) as { readonly [K in keyof T]: ErrorMaker };
}

/**
 * Renders one error as the wire body (JSON) of one area. `at` is the request's method and path, for areas whose body depends on
 * them.
 */
export type Envelope = (error: ServiceError, at: { readonly method: string; readonly path: string }) => unknown;

/**
 * The errors of the request grammar, before a handler runs. A contract or a route can replace any of them with its own error
 * (`faults`), so that every area keeps the texts of the specification.
 */
export const faults = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  invalid_json: { status: 400, message: "Invalid JSON" },
  request_timeout: { status: 408, message: "The request body stopped arriving" },
  origin_not_allowed: { status: 403, message: "Web pages of this origin may not call this service" },
  not_found: { status: 404, message: "Not found" },
  method_not_allowed: { status: 405, message: "Method not allowed" },
  body_too_large: { status: 413, message: "Request body too large" },
  unsupported_media_type: { status: 415, message: "Unsupported media type" },
  host_not_allowed: { status: 421, message: "This service does not answer for the host that the request names" },
  internal_error: { status: 500, message: "Internal error" },
  storage_full: { status: 503, message: SHORTAGE_WORDS.storage_full },
  too_many_open_files: { status: 503, message: SHORTAGE_WORDS.too_many_open_files },
  store_unavailable: { status: 503, message: "The service cannot reach its store" },
  service_not_ready: { status: 503, message: "The service is not ready" },
});

export type FaultCode = keyof typeof faults;
/** An area's own errors in place of those of the grammar. */
export type Faults = { readonly [K in FaultCode]?: ErrorMaker };

/** The error of `instanceAccess` and `scraperAccess`, and of areas that use it with `callerGuard`. */
export const accessErrors = defineErrors({ unauthorized: { status: 401, message: "unauthorized" } });

/** The errors of an area that uses `ownerGuard`. `message` says what only owners may do. */
export function ownerErrors(message: string): { readonly unauthorized: ErrorMaker; readonly owner_required: ErrorMaker } {
  return { ...accessErrors, ...defineErrors({ owner_required: { status: 403, message } }) };
}

/** The body of an error of a service page: what went wrong in `error`, and its code. */
export const pageEnvelope: Envelope = (error) => ({ error: error.message, code: error.code });
