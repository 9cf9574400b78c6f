/** An answer of the store that is no success. It carries nothing of what the store said but its code. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly status: number;
  /** The store's word for it, as `NoSuchKey`; empty where it gave none. */
  readonly code: string;
  /** Whether the same request was sent before, and may have been carried out then: its answer was lost, or said that something failed. */
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
/** These come with a status that says otherwise, too. */
const PASSING_CODE: ReadonlySet<string> = new Set([
  ...["InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "Throttling"],
  ...["ConditionalRequestConflict", "OperationAborted"],
]);
const PASSING_LINE: ReadonlySet<unknown> = new Set([
  ...["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH", "EAI_AGAIN"],
  ...["UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"],
]);

/** Whether the same request may succeed a little later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof StoreError) return PASSING_STATUS.has(error.status) || PASSING_CODE.has(error.code);
  return PASSING_LINE.has((error as NodeJS.ErrnoException).code);
}
