import type { ports } from "@portico/core";
import type { Usage } from "@portico/core/model-protocols";

/** Counts model calls of one subject. */
export interface CountedCalls {
  /** Resolves when the call is noted durably. */
  begin(called: Pick<ports.UsageSubject, "provider" | "model">, signal: AbortSignal | undefined): Promise<ports.UsageCall>;
}

/** Counts calls in the port `usage`. Undefined without that port. */
export function countedCalls(
  usage: ports.Usage | undefined,
  subject: Omit<ports.UsageSubject, "provider" | "model">,
): CountedCalls | undefined {
  if (!usage) return undefined;
  const never = new AbortController().signal;
  return { begin: (called, signal = never) => usage.begin({ ...subject, ...called }, signal) };
}

/**
 * What a call used. `error` is the code of a failure: a number is the status with which the provider refused it. A call that was aborted has
 * not failed, and its duration says nothing.
 */
export function toUsageEnd(
  usage: Usage | undefined,
  error: string | undefined,
  { durationMs, firstTokenMs }: Pick<ports.UsageEnd, "durationMs" | "firstTokenMs">,
): ports.UsageEnd {
  const ended = {
    firstTokenMs,
    ...(error === undefined && { durationMs }),
    isFailed: error !== undefined && error !== "aborted",
  };
  if (!usage) return { ...ended, isRefused: error !== undefined && /^\d{3}$/.test(error) };
  return {
    ...ended,
    inputTokens: inputTokensOf(usage),
    outputTokens: usage.output,
    cachedInputTokens: usage.cacheRead,
    cacheWriteTokens: usage.cacheWrite,
  };
}

/** All tokens of a prompt, those from a cache, too. Undefined if the provider did not count them. */
export function inputTokensOf(usage: Usage | undefined): number | undefined {
  const { input, cacheRead = 0, cacheWrite = 0 } = usage ?? {};
  return input === undefined ? undefined : input + cacheRead + cacheWrite;
}
