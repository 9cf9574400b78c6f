import { isSpanContextValid, type SpanContext, TraceFlags } from "@opentelemetry/api";

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Parses a `traceparent` (W3C Trace Context). Undefined if it is invalid. The ids are only names for logs and spans, because any
 * caller can send any ids.
 */
export function parseTraceparent(traceparent: string | undefined): SpanContext | undefined {
  const found = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  // Only later versions may have more parts.
  if (!found || (traceparent!.startsWith("00") && found[4] !== undefined)) return undefined;
  const [, traceId, spanId, flags] = found;
  return { traceId: traceId!, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** The `traceparent` that continues a span. Undefined without a span. */
export function traceparentOf(span: SpanContext | undefined): string | undefined {
  if (!span || !isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-0${span.traceFlags & TraceFlags.SAMPLED}`;
}
