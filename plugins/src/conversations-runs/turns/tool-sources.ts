import { orAborted, type ports } from "@portico/core";

/** The tools of a source now. Rejects with the signal's reason as soon as it is aborted, also if the source ignores the signal. */
export function toolsOf<T>(
  source: { list(signal: AbortSignal): Promise<readonly T[]> },
  signal: AbortSignal,
): Promise<readonly T[]> {
  const listing = async () => source.list(signal);
  return orAborted(listing(), signal);
}

/** What a source says is wrong now. Empty if it says nothing, or if it fails. */
export function problemsOf(source: Pick<ports.ToolSource, "problems">): readonly ports.ToolProblem[] {
  try {
    return source.problems?.() ?? [];
  } catch {
    return [];
  }
}
