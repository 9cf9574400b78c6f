import { ports } from "@portico/core";

/** Temporary statuses: a retry can get another one. In addition to 5xx. */
const PASSING = new Set([408, 425, 429]);
const LATE = new Set(["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ETIMEDOUT"]);

export function addressRefused(message: string, cause?: unknown): ports.NodeFailed {
  return new ports.NodeFailed("http_address_refused", message, { retryable: false, cause });
}

export function unexpectedStatus(
  origin: string,
  { status, retryAfterMs, ...kept }: ports.FailedAnswer & { readonly retryAfterMs?: number | undefined },
  detail = "",
): ports.NodeFailed {
  const retryable = PASSING.has(status) || status >= 500;
  const answer = { status, ...kept };
  return new ports.NodeFailed("http_status", `${origin} answered with status ${status}${detail}`, {
    ...{ retryable, answer, retryAfterMs },
  });
}

export function tooLarge(origin: string): ports.NodeFailed {
  const megabytes = ports.NODE_OUTPUT_BYTES / 1024 / 1024;
  return new ports.NodeFailed("http_too_large", `${origin} answered with more than ${megabytes} MiB`, { retryable: false });
}

export function tooDeep(origin: string): ports.NodeFailed {
  const message = `${origin} answered with JSON of more than ${ports.NODE_OUTPUT_LEVELS} levels`;
  return new ports.NodeFailed("http_too_deep", message, { retryable: false });
}

/** Describes a connection error. The message contains at most the origin. */
export function toFailure(error: unknown, origin: string): ports.NodeFailed {
  if (error instanceof ports.NodeFailed) return error;
  const { name, code } = error as { name?: string; code?: unknown };
  if (name === "AddressRefused")
    return addressRefused(`${origin} leads to an address that this instance's workflows may not reach`, error);
  const word = typeof code === "string" && /^[A-Z0-9_]{1,64}$/.test(code) ? ` (${code})` : "";
  if (LATE.has(String(code)))
    return new ports.NodeFailed("http_timeout", `${origin} did not answer in time${word}`, { cause: error });
  return new ports.NodeFailed("http_unreachable", `${origin} could not be reached, or ended its answer early${word}`, {
    cause: error,
  });
}
