/** What went wrong, in the service's own words. How it looks on the wire is the envelope's business. */
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

/** Turn a table of codes into throwable makers: the table is the documentation. */
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

/** Renders one error as one area's wire body (JSON). `at` tells where, for areas whose body depends on the path. */
export type Envelope = (error: ServiceError, at: { readonly method: string; readonly path: string }) => unknown;

/**
 * What the grammar itself can refuse before a handler runs. A contract or a route replaces any of them by an error of its own
 * (`faults`), so that every area keeps the words of the specification.
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
  internal_error: { status: 500, message: "Internal error" },
  service_not_ready: { status: 503, message: "The service is not ready" },
});

export type FaultCode = keyof typeof faults;
/** Own errors in place of the grammar's. */
export type Faults = { readonly [K in FaultCode]?: ErrorMaker };
