import type { Usage } from "../convert/model-events.ts";

/** Token counts for log lines and metrics. The input includes tokens that were read from or written to a cache. Unreported counts are absent. */
export function tokenCounts(usage: Usage | undefined): { readonly inputTokens?: number; readonly outputTokens?: number } {
  if (usage === undefined) return {};
  const { input, cacheRead, cacheWrite, output } = usage;
  const isInputKnown = input !== undefined || cacheRead !== undefined || cacheWrite !== undefined;
  return {
    ...(isInputKnown && { inputTokens: (input ?? 0) + (cacheRead ?? 0) + (cacheWrite ?? 0) }),
    ...(output !== undefined && { outputTokens: output }),
  };
}
