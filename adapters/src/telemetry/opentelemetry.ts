import { defineAdapter, ports } from "@portico/core";
import type { LogDestination } from "./opentelemetry/line-batch.ts";
import { createLogLines, type LogFormat, type LogLevel } from "./opentelemetry/log-lines.ts";
import { createMeasures } from "./opentelemetry/measures.ts";
import { RequestRecord } from "./opentelemetry/request-record.ts";
import type { PrometheusMetrics } from "./prometheus.ts";
import { createRequestSpans } from "./opentelemetry/request-span.ts";

export interface OpenTelemetryOptions {
  /** The quietest lines that are still written; default `info`. `silent` writes none. */
  readonly level?: LogLevel;
  /** `json`: one object per line, for machines (default). `text`: one compact line, for people. */
  readonly format?: LogFormat;
  /** Where the lines go; default standard error. A stream that is given stays open when the app closes. */
  readonly destination?: LogDestination;
  /** Gets every request, too: one from `createPrometheusMetrics()`, whose text the host shows where it wants. */
  readonly prometheus?: PrometheusMetrics;
}

/**
 * One log line per request, and spans and metrics through the OpenTelemetry API alone: they cost next to nothing and go nowhere unless the
 * host installs an SDK before the app is created. Names follow the HTTP and generative-AI semantic conventions.
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
    return {
      log: lines.log,
      begin(request) {
        const span = spans.begin(request);
        return new RequestRecord(request, (ended) => {
          lines.request(ended);
          span.end(ended);
          measures.record(ended);
          options?.prometheus?.record(ended);
        });
      },
    };
  },
});
