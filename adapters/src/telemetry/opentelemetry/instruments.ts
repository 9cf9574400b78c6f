import {
  type Context,
  context,
  createNoopMeter,
  type Meter,
  metrics,
  propagation,
  ProxyTracerProvider,
  type SpanContext,
  type TextMapGetter,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import type { CauseDescription, ports } from "@portico/core";
import { SCOPE } from "./request-record.ts";

/** Where spans, metrics and log lines go: to the host's own SDK, or to an endpoint of OTLP. */
export interface Instruments {
  readonly tracer: Tracer;
  /** Whether spans go anywhere. A host without an SDK has a tracer that drops them. */
  isTraced(): boolean;
  /** Undefined without an SDK. */
  readonly meter: Meter | undefined;
  /** The span to which the present work belongs. */
  readonly contexts: {
    active(): Context;
    with<T>(within: Context, work: () => T): T;
  };
  /** Reads the caller's trace context. */
  extract<C>(within: Context, carrier: C, getter: TextMapGetter<C>): Context;
  /** Also gets every written log line. */
  readonly emit?: ((line: EmittedLine) => void) | undefined;
}

/** One log line. */
export interface EmittedLine {
  readonly level: keyof ports.Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly cause?: CauseDescription | undefined;
  /** The span to which it belongs. */
  readonly span?: SpanContext | undefined;
}

/** The host's own SDK. Without one, spans and metrics cost almost nothing and are dropped. */
export function hostInstruments(): Instruments {
  const provider = trace.getTracerProvider();
  const meter = metrics.getMeter(SCOPE);
  return {
    tracer: trace.getTracer(SCOPE),
    isTraced: () => !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(SCOPE) !== undefined,
    meter: meter === createNoopMeter() ? undefined : meter,
    contexts: { active: () => context.active(), with: (within, work) => context.with(within, work) },
    extract: (within, carrier, getter) => propagation.extract(within, carrier, getter),
  };
}
