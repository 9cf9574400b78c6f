import { defineAdapter, ports, type Scope } from "@portico/core";
import { createLogLines, type LogDestination, type LogFormat, type LogLevel } from "./opentelemetry/log-lines.ts";
import { createMeasures } from "./opentelemetry/measures.ts";
import { callOfItsOwn, callOfRequest, type EndedCall, RequestRecord } from "./opentelemetry/request-record.ts";
import { Gauges } from "./gauges.ts";
import { hostInstruments, type Instruments } from "./opentelemetry/instruments.ts";
import { ExportHealth } from "./otlp/export-health.ts";
import { addressesOf, type ExportedService, type OtlpOptions } from "./otlp-options.ts";
import type { EndedRequests } from "./ended-requests.ts";
import type { PrometheusMetrics } from "./prometheus.ts";
import type { RecentLines } from "./recent-lines.ts";
import { createRequestSpans, createWorkSpans } from "./opentelemetry/spans.ts";

export type { OtlpOptions, OtlpSignal } from "./otlp-options.ts";

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions extends ExportedService {
  /** The minimum level of written lines; default `info`. `silent` writes no lines. */
  readonly level?: LogLevel;
  /** `json`: one object per line, for machines (default). `text`: one compact line, for people. */
  readonly format?: LogFormat;
  /** Destination of the lines; default: standard error. A given stream stays open when the app closes. */
  readonly destination?: LogDestination;
  /** Also gets every request: the result of `createPrometheusMetrics()`, whose text the host serves. */
  readonly prometheus?: PrometheusMetrics;
  /** Also gets the end of every request: the result of `createEndedRequests()`, which the adapter `usage/records` counts. */
  readonly endedRequests?: EndedRequests;
  /** Also gets every line: the result of `createRecentLines()`, which the plugin `log` sends to readers. */
  readonly recentLines?: RecentLines;
  /** Adds the prompts and answers of turns, and the arguments and results of tools, to spans. Default: false. */
  readonly content?: boolean | undefined;
  /** Which of several processes that serve one proxy this is, counted from 1: each log line says it. Default: lines do not say it. */
  readonly proxyProcess?: number | undefined;
  /** Exports traces, metrics and log lines over OTLP. An SDK of the host then gets none of them. Default: no export. */
  readonly otlp?: OtlpOptions | undefined;
}

/**
 * One log line per request, and spans and metrics: through the OpenTelemetry API alone, or with `otlp` to an endpoint. Without an
 * SDK and without `otlp`, spans and metrics cost almost nothing and are not exported. The host must install an SDK before the app
 * is created. Names follow the HTTP and generative-AI semantic conventions.
 */
export const openTelemetry = defineAdapter({
  name: "telemetry/opentelemetry",
  port: ports.telemetry,
  needs: {},
  open(_given, options: OpenTelemetryOptions | undefined, scope): ports.Telemetry | Promise<ports.Telemetry> {
    const { otlp, ...others } = options ?? {};
    const isExported = otlp !== undefined && Object.keys(addressesOf(otlp)).length > 0;
    return isExported ? openExported(others, otlp, scope) : openWith(hostInstruments(), others, scope);
  },
});

type Others = Omit<OpenTelemetryOptions, "otlp">;

async function openExported(options: Others, otlp: OtlpOptions, scope: Scope): Promise<ports.Telemetry> {
  // The SDKs take as long to load as Node.js to start, so only an app with an endpoint loads them.
  const { openOtlp } = await import("./otlp/open-otlp.ts");
  let log: ports.Log | undefined;
  const health = new ExportHealth(() => log);
  const exported = openOtlp(otlp, options, health);
  const telemetry = openWith(exported, options, scope);
  log = telemetry.log;
  // Before the lines are closed: its last warning is one of them.
  scope.onClose(() => exported.close());
  scope.onClose(telemetry.gauge(health.gauge));
  return telemetry;
}

function openWith(instruments: Instruments, options: Others, scope: Scope): ports.Telemetry {
  const lines = createLogLines(options, instruments);
  scope.onClose(() => lines.close());
  const spans = createRequestSpans(instruments);
  const works = createWorkSpans(instruments, options.content);
  const measures = createMeasures(instruments.meter);
  const gauges = new Gauges();
  options.prometheus?.collect(gauges);
  const tellCall = (ended: EndedCall) => {
    measures.recordCall(ended);
    options.prometheus?.recordCall(ended);
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
        options.prometheus?.record(ended);
        options.endedRequests?.record(ended);
        if (call) tellCall(call);
      });
    },
    work: (work) =>
      works.begin(work, (ended) => {
        measures.recordWork(ended);
        options.prometheus?.recordWork(ended);
      }),
    traceparent: () => works.traceparent(),
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
}
