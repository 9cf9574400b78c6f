/** The error of a call under this signal: the signal's reason, as an Error, which streams require. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new DOMException("The call was aborted", "AbortError");
}
