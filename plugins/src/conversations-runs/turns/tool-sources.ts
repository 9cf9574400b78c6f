import { orAborted, type ports } from "@portico/core";

/** The tools of a source now, for this caller if one is given. Rejects with the signal's reason as soon as it is aborted, also if the source ignores the signal. */
export function toolsOf<T>(
  source: { list(signal: AbortSignal, caller?: Pick<ports.ToolCaller, "userId">): Promise<readonly T[]> },
  signal: AbortSignal,
  caller?: Pick<ports.ToolCaller, "userId">,
): Promise<readonly T[]> {
  const listing = async () => source.list(signal, caller);
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
