import { ports } from "@portico/core";

const DRIVER_LOST = /^Connection terminated(?: unexpectedly)?$|not queryable|^Client was closed/;

/** The port's error for a foreign one: `action` is what could not be done with the store. */
export function toUnavailable(action: "opened" | "read" | "written", cause: unknown): ports.RecordsUnavailable {
  if (cause instanceof ports.RecordsUnavailable) return cause;
  const code = codeOf(cause);
  return new ports.RecordsUnavailable(`The records store cannot be ${action}${code === undefined ? "" : ` (${code})`}`, {
    cause: withoutContext(cause, code),
  });
}

/** Whether the connection is gone, so that the same call may succeed on another. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  // Without a code it is the driver's own: the connection ended, or is no longer usable.
  if (code === undefined) return error instanceof Error && DRIVER_LOST.test(error.message);
  return /^(?:08...|57P0[1235]|E[A-Z]+)$/.test(code);
}

/** Whether the database refused a statement for what it said, so that the same statement without that may succeed. */
export function isRefused(error: unknown): boolean {
  return /^(?:22|42|54|XX)/.test(codeOf(error) ?? "");
}

/** SQLSTATE, or what Node's sockets call it. */
function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[0-9A-Z_]{2,40}$/.test(code) ? code : undefined;
}

/** Details of a database's error quote rows, and a driver's error carries its connection with it. */
function withoutContext(cause: unknown, code: string | undefined): unknown {
  if (!(cause instanceof Error)) return undefined;
  const plain = new Error(cause.message);
  plain.name = cause.name;
  return Object.assign(plain, { stack: cause.stack }, code === undefined ? {} : { code });
}
