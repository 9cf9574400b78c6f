import type { ports } from "@portico/core";
import { retryDelayIn } from "@portico/core/model-protocols";

/** A day: quotas of vendors end daily. A longer wait than this counts as a day. */
const LONGEST_MS = 24 * 60 * 60_000;

/**
 * How long an upstream asks to wait: `retry-after` in seconds or as a date (RFC 9110, 10.2.3), or `retry-after-ms` (read first by the
 * client libraries of OpenAI and Anthropic), or within the text of its error. Undefined if it asks for no wait, or not in a valid form. A date in the
 * past is 0.
 */
export function retryAfterOf(headers: ports.ModelAnswer["headers"], now: number, error?: string): number | undefined {
  const ms = numberIn(headers["retry-after-ms"]) ?? timesThousand(numberIn(headers["retry-after"]));
  const date = ms === undefined ? Date.parse(textOf(headers["retry-after"])) : Number.NaN;
  const wait = ms ?? (Number.isFinite(date) ? date - now : error && retryDelayIn(error));
  return typeof wait !== "number" ? undefined : Math.min(Math.max(wait, 0), LONGEST_MS);
}

function numberIn(value: string | readonly string[] | undefined): number | undefined {
  const text = textOf(value).trim();
  return /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

function timesThousand(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000;
}

function textOf(value: string | readonly string[] | undefined): string {
  return typeof value === "string" ? value : (value?.[0] ?? "");
}
