import type { Usage } from "../convert/model-events.ts";

/** Token counts as log lines and metrics have them: the input with what a cache gave or took. What was not reported is absent. */
export function tokenCounts(usage: Usage | undefined): { readonly inputTokens?: number; readonly outputTokens?: number } {
  if (usage === undefined) return {};
  const { input, cacheRead, cacheWrite, output } = usage;
  const isInputKnown = input !== undefined || cacheRead !== undefined || cacheWrite !== undefined;
  return {
    ...(isInputKnown && { inputTokens: (input ?? 0) + (cacheRead ?? 0) + (cacheWrite ?? 0) }),
    ...(output !== undefined && { outputTokens: output }),
  };
}
