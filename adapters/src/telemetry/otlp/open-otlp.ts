import { type Attributes, type Meter, ROOT_CONTEXT, SeverityNumber, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  LogsExporterMetricsHelper,
  MetricsExporterMetricsHelper,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from "@opentelemetry/otlp-transformer";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import {
  AlwaysOffSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { EmittedLine, Instruments } from "../opentelemetry/instruments.ts";
import { SCOPE } from "../opentelemetry/request-record.ts";
import type { ExportHealth } from "./export-health.ts";
import { addressesOf, type ExportedService, OTLP_DEFAULTS, type OtlpOptions, parsePairs } from "../otlp-options.ts";
import { SignalExporter } from "./signal-exporter.ts";

/** The export over OTLP. */
export interface Otlp extends Instruments {
  /** Sends what is left, and gives up after two seconds: a stop does not wait for a receiver. */
  close(): Promise<void>;
}

const CLOSE_MS = 2_000;

const MOST_WAITING = 2048;
const SEVERITIES = {
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
} as const;

/**
 * SDKs of this app alone: the host's own SDK is neither used nor replaced. At most MOST_WAITING spans and as many log lines wait for their
 * export. If a receiver is away, the rest is dropped.
 */
export function openOtlp(options: OtlpOptions, service: ExportedService, health: ExportHealth): Otlp {
  const { traces, metrics, logs } = addressesOf(options);
  const resource = resourceFromAttributes({
    "service.name": service.serviceName ?? "portico",
    "process.pid": process.pid,
    ...(service.serviceVersion && { "service.version": service.serviceVersion }),
    ...parsePairs(service.resourceAttributes ?? ""),
  });
  const tracers = openTraces(traces, resource, options, health);
  const meters = openMetrics(metrics, resource, options, health);
  const loggers = openLogs(logs, resource, options, health);
  const meter = meters.getMeter(SCOPE);
  measureProcess(meter);
  const contexts = new AsyncLocalStorageContextManager().enable();
  const propagator = new W3CTraceContextPropagator();
  const logger = loggers.getLogger(SCOPE);
  return {
    tracer: tracers.getTracer(SCOPE),
    isTraced: () => true,
    meter,
    contexts: { active: () => contexts.active(), with: (within, work) => contexts.with(within, work) },
    extract: (within, carrier, getter) => propagator.extract(within, carrier, getter),
    emit: logs
      ? ({ level, message, fields, cause, span }: EmittedLine) =>
          logger.emit({
            severityNumber: SEVERITIES[level],
            severityText: level,
            body: message,
            attributes: { ...known(fields), ...(cause && causeAttributes(cause)) },
            context: span ? trace.setSpanContext(ROOT_CONTEXT, span) : ROOT_CONTEXT,
          })
      : undefined,
    async close() {
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, CLOSE_MS);
      const closed = Promise.allSettled([tracers.shutdown(), meters.shutdown(), loggers.shutdown()]);
      await Promise.race([closed, late.promise]);
      clearTimeout(timer);
      contexts.disable();
    },
  };
}

function openTraces(url: string | undefined, resource: Resource, options: OtlpOptions, health: ExportHealth): TracerProvider {
  if (url === undefined) return new TracerProvider({ sampler: new AlwaysOffSampler() });
  const ratio = new TraceIdRatioBasedSampler(options.sampleRatio ?? 1);
  const exporter = new SignalExporter("traces", url, options, health, {
    serializer: options.protocol === "http/json" ? JsonTraceSerializer : ProtobufTraceSerializer,
    helper: TraceExporterMetricsHelper,
  });
  return new TracerProvider({
    resource,
    // A caller may leave a trace out, and cannot have more traces recorded than the ratio allows.
    sampler: new ParentBasedSampler({ root: ratio, remoteParentSampled: ratio }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: MOST_WAITING,
        scheduledDelayMillis: options.spansEveryMs ?? OTLP_DEFAULTS.spansEveryMs,
      }),
    ],
  });
}

function openMetrics(url: string | undefined, resource: Resource, options: OtlpOptions, health: ExportHealth): MeterProvider {
  if (url === undefined) return new MeterProvider();
  const exportIntervalMillis = options.metricsEveryMs ?? OTLP_DEFAULTS.metricsEveryMs;
  const exporter = new SignalExporter("metrics", url, options, health, {
    serializer: options.protocol === "http/json" ? JsonMetricsSerializer : ProtobufMetricsSerializer,
    helper: MetricsExporterMetricsHelper,
  });
  const exportTimeoutMillis = Math.min(exportIntervalMillis, 30_000);
  return new MeterProvider({
    resource,
    readers: [new PeriodicExportingMetricReader({ exportIntervalMillis, exportTimeoutMillis, exporter })],
  });
}

function openLogs(url: string | undefined, resource: Resource, options: OtlpOptions, health: ExportHealth): LoggerProvider {
  if (url === undefined) return new LoggerProvider();
  const exporter = new SignalExporter("logs", url, options, health, {
    serializer: options.protocol === "http/json" ? JsonLogsSerializer : ProtobufLogsSerializer,
    helper: LogsExporterMetricsHelper,
  });
  const scheduledDelayMillis = options.logsEveryMs ?? OTLP_DEFAULTS.logsEveryMs;
  const processor = new BatchLogRecordProcessor({ exporter, maxQueueSize: MOST_WAITING, scheduledDelayMillis });
  return new LoggerProvider({ resource, processors: [processor] });
}

/** Read at each export, with the names of the semantic conventions. */
function measureProcess(meter: Meter): void {
  const memory = meter.createObservableUpDownCounter("process.memory.usage", { unit: "By", description: "Resident memory" });
  memory.addCallback((result) => result.observe(process.memoryUsage.rss()));
  const time = meter.createObservableCounter("process.cpu.time", { unit: "s", description: "Time of the processor" });
  time.addCallback((result) => {
    const { user, system } = process.cpuUsage();
    result.observe(user / 1e6, { "cpu.mode": "user" });
    result.observe(system / 1e6, { "cpu.mode": "system" });
  });
}

function known(fields: EmittedLine["fields"]): Attributes {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function causeAttributes({ name, code, at = [] }: NonNullable<EmittedLine["cause"]>): Attributes {
  return {
    "exception.type": name,
    ...(code !== undefined && { "error.code": String(code) }),
    ...(at.length > 0 && { "exception.stacktrace": at.join("\n") }),
  };
}
