/** An error answer of the store. It carries only the code of the store's answer. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly status: number;
  /** The store's code, such as `NoSuchKey`. Empty without one. */
  readonly code: string;
  /** Whether the same request was sent before and may have taken effect then: its answer was lost, or reported a failure. */
  readonly isRepeated: boolean;

  constructor(status: number, code: string, isRepeated: boolean) {
    super(`The store answered ${status} ${code}`.trimEnd());
    this.status = status;
    this.code = code;
    this.isRepeated = isRepeated;
  }
}

export function hasStatus(error: unknown, status: number): error is StoreError {
  return error instanceof StoreError && error.status === status;
}

const PASSING_STATUS: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
/** Temporary errors, even if their status suggests otherwise. */
const PASSING_CODE: ReadonlySet<string> = new Set([
  ...["InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "Throttling"],
  ...["ConditionalRequestConflict", "OperationAborted"],
]);
const PASSING_LINE: ReadonlySet<unknown> = new Set([
  ...["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH", "EAI_AGAIN"],
  ...["UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"],
]);

/** Whether the same request can succeed a little later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof StoreError) return PASSING_STATUS.has(error.status) || PASSING_CODE.has(error.code);
  return PASSING_LINE.has((error as NodeJS.ErrnoException).code);
}
