const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/**
 * The trace id of a `traceparent` header (W3C Trace Context). Undefined for an invalid header. It is only a name for logs and
 * spans, because any caller can send any trace id.
 */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  const found = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  // Only later versions may have more parts.
  return found && !(traceparent!.startsWith("00") && found[2] !== undefined) ? found[1] : undefined;
}
