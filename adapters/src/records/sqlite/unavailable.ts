import { findStoreTooNew, ports } from "@portico/core";

/** An error of SQLite. */
interface SqliteError extends Error {
  readonly errcode: number;
  readonly errstr: string;
}

const PRIMARY_CODE = 0xff;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
/** SQLite's messages for these two codes. Deno gives no code for errors of `exec`. */
const LOCKED = /^database (?:table )?is locked$/;

/** Converts a foreign error to the port's, with the error as its cause. `action` says what failed. */
export function toUnavailable(action: "opened" | "read" | "written", cause: unknown): ports.RecordsUnavailable {
  if (cause instanceof ports.RecordsUnavailable) return cause;
  const tooNew = findStoreTooNew(cause);
  if (tooNew) return new ports.RecordsUnavailable(tooNew.message, { cause: tooNew });
  const reason = isSqliteError(cause) ? `: ${cause.errstr}` : "";
  return new ports.RecordsUnavailable(`The records store cannot be ${action}${reason}`, { cause });
}

/** Whether another connection holds a lock, so that the same call can succeed a little later. */
export function isBusy(error: unknown): boolean {
  if (!isSqliteError(error)) return error instanceof Error && LOCKED.test(error.message);
  const code = error.errcode & PRIMARY_CODE;
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number" && "errstr" in error;
}
