/** What a call under this signal fails with: the signal's reason, as the error that streams insist on. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new DOMException("The call was aborted", "AbortError");
}
