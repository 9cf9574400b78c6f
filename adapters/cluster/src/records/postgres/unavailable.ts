import { findStoreMismatch, ports } from "@portico/core";

const DRIVER_LOST = /^Connection terminated(?: unexpectedly)?$|not queryable|^Client was closed/;

/** Converts a foreign error to the port's. `action` says what failed. */
export function toUnavailable(action: "opened" | "read" | "written", cause: unknown): ports.RecordsUnavailable {
  if (cause instanceof ports.RecordsUnavailable) return cause;
  const mismatch = findStoreMismatch(cause);
  if (mismatch) return new ports.RecordsUnavailable(mismatch.message, { cause: mismatch });
  const code = codeOf(cause);
  return new ports.RecordsUnavailable(`The records store cannot be ${action}${code === undefined ? "" : ` (${code})`}`, {
    cause: withoutContext(cause, code),
  });
}

/** Whether the connection was lost, so that the same call can succeed on another. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  // Errors without a code come from the driver: the connection ended, or is unusable.
  if (code === undefined) return error instanceof Error && DRIVER_LOST.test(error.message);
  return /^(?:08...|57P0[1235]|E[A-Z]+)$/.test(code);
}

/** Whether the database refused a statement for its content, so that other statements of the group can succeed. */
export function isRefused(error: unknown): boolean {
  return /^(?:22|42|54|XX)/.test(codeOf(error) ?? "");
}

/** SQLSTATE, or the code of Node's sockets. */
function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[0-9A-Z_]{2,40}$/.test(code) ? code : undefined;
}

/** Details of a database's error quote rows, and a driver's error references its connection. */
function withoutContext(cause: unknown, code: string | undefined): unknown {
  if (!(cause instanceof Error)) return undefined;
  const plain = new Error(cause.message);
  plain.name = cause.name;
  return Object.assign(plain, { stack: cause.stack }, code === undefined ? {} : { code });
}
