import { defineAdapter, ports } from "@portico/core";
import type { LogDestination } from "./opentelemetry/line-batch.ts";
import { createLogLines, type LogFormat, type LogLevel } from "./opentelemetry/log-lines.ts";
import { createMeasures } from "./opentelemetry/measures.ts";
import { RequestRecord } from "./opentelemetry/request-record.ts";
import { callOfItsOwn, callOfRequest, type EndedCall } from "./opentelemetry/ended-call.ts";
import { Gauges } from "./gauges.ts";
import type { PrometheusMetrics } from "./prometheus.ts";
import { createRequestSpans } from "./opentelemetry/request-span.ts";

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** The minimum level of written lines; default `info`. `silent` writes no lines. */
  readonly level?: LogLevel;
  /** `json`: one object per line, for machines (default). `text`: one compact line, for people. */
  readonly format?: LogFormat;
  /** Destination of the lines; default: standard error. A given stream stays open when the app closes. */
  readonly destination?: LogDestination;
  /** Also gets every request: the result of `createPrometheusMetrics()`, whose text the host serves. */
  readonly prometheus?: PrometheusMetrics;
}

/**
 * One log line per request, and spans and metrics through the OpenTelemetry API alone: without an SDK, they cost almost nothing
 * and are not exported. The host must install an SDK before the app is created. Names follow the HTTP and generative-AI semantic
 * conventions.
 */
export const openTelemetry = defineAdapter({
  name: "telemetry/opentelemetry",
  port: ports.telemetry,
  needs: {},
  open(_given, options: OpenTelemetryOptions | undefined, scope): ports.Telemetry {
    const lines = createLogLines(options ?? {});
    scope.onClose(() => lines.close());
    const spans = createRequestSpans();
    const measures = createMeasures();
    const gauges = new Gauges();
    options?.prometheus?.collect(gauges);
    const tellCall = (ended: EndedCall) => {
      measures.recordCall(ended);
      options?.prometheus?.recordCall(ended);
    };
    return {
      log: lines.log,
      begin(request) {
        const span = spans.begin(request);
        return new RequestRecord(request, span, (ended) => {
          const call = callOfRequest(ended);
          lines.request(ended);
          span.end(ended, call);
          measures.record(ended);
          options?.prometheus?.record(ended);
          if (call) tellCall(call);
        });
      },
      modelCall(call) {
        const ended = callOfItsOwn(call);
        spans.call(ended);
        tellCall(ended);
      },
      gauge(gauge) {
        const remove = gauges.add(gauge);
        const stop = measures.observe(gauge);
        return () => {
          remove();
          stop();
        };
      },
    };
  },
});
