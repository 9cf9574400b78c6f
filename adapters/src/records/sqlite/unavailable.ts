import { ports } from "@portico/core";

/** What SQLite reports when something goes wrong. */
interface SqliteError extends Error {
  readonly errcode: number;
  readonly errstr: string;
}

const PRIMARY_CODE = 0xff;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;

/** The port's error for a foreign one, which becomes its cause: `action` is what could not be done with the store. */
export function toUnavailable(action: "opened" | "read" | "written", cause: unknown): ports.RecordsUnavailable {
  if (cause instanceof ports.RecordsUnavailable) return cause;
  const reason = isSqliteError(cause) ? `: ${cause.errstr}` : "";
  return new ports.RecordsUnavailable(`The records store cannot be ${action}${reason}`, { cause });
}

/** Whether another connection holds a lock, so that the same call may succeed a little later. */
export function isBusy(error: unknown): boolean {
  if (!isSqliteError(error)) return false;
  const code = error.errcode & PRIMARY_CODE;
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number" && "errstr" in error;
}
