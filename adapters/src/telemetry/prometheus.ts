import prometheus from "prom-client";
import { boundSeries, type Gauges, type ReadGauge } from "./gauges.ts";
import { CALLER_LEFT, type EndedCall, type EndedRequest, type EndedWork, errorType } from "./opentelemetry/request-record.ts";

/** Metrics for a Prometheus server to scrape. Pass them to the adapter `telemetry/opentelemetry`, which feeds them. */
export interface PrometheusMetrics {
  /** Content type of the text. */
  readonly contentType: string;
  /** All metrics so far, in Prometheus' text format. */
  text(): Promise<string>;
  /** Sums of this process since its start, and its present memory. */
  counters(): ProcessCounters;
  record(ended: EndedRequest): void;
  recordCall(ended: EndedCall): void;
  recordWork(ended: EndedWork): void;
  /** Read these gauges for each text. */
  collect(gauges: Pick<Gauges, "read">): void;
}

/** What a process counted since its start. */
export interface ProcessCounters {
  readonly requests: number;
  /** Requests with status 500 or higher, or whose answer broke. A request that was aborted by its caller is no failure. */
  readonly failedRequests: number;
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly residentBytes: number;
  readonly uptimeSeconds: number;
}

const HTTP_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const MODEL_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/**
 * Metrics of one app. Labels are names from contracts and configurations, so that callers cannot invent any. Each instrument has at most 2,000
 * series.
 */
export function createPrometheusMetrics(): PrometheusMetrics {
  const registry = new prometheus.Registry();
  const registers = [registry];
  const requests = new prometheus.Histogram({
    name: "http_server_request_duration_seconds",
    help: "Duration of HTTP requests",
    labelNames: ["area", "route", "method", "status", "error_type"],
    buckets: HTTP_SECONDS,
    registers,
  });
  const operations = new prometheus.Histogram({
    name: "gen_ai_client_operation_duration_seconds",
    help: "Duration of model calls: through the proxy, of agents and of workflow nodes",
    labelNames: ["provider", "model", "source", "error_type"],
    buckets: MODEL_SECONDS,
    registers,
  });
  const works = new prometheus.Histogram({
    name: "portico_work_duration_seconds",
    help: "Duration of turns, tool calls, executions of workflow runs, and their nodes",
    labelNames: ["kind", "error_type"],
    buckets: MODEL_SECONDS,
    registers,
  });
  const tokens = new prometheus.Counter({
    name: "gen_ai_client_tokens_total",
    help: "Tokens that model calls used, as far as providers report them",
    labelNames: ["provider", "model", "type", "source"],
    registers,
  });
  processMetrics(registers);
  const bound = boundSeries();
  const collected: Pick<Gauges, "read">[] = [];
  const counted = { requests: 0, failedRequests: 0, modelCalls: 0, inputTokens: 0, outputTokens: 0 };

  return {
    contentType: registry.contentType,
    async text() {
      const read = (await Promise.all(collected.map((gauges) => gauges.read()))).flat();
      return (await registry.metrics()) + (await textOf(read));
    },
    counters: () => ({ ...counted, residentBytes: process.memoryUsage.rss(), uptimeSeconds: process.uptime() }),
    collect: (gauges) => void collected.push(gauges),
    record(ended) {
      const { request, status, beganAt, endedAt } = ended;
      const method = METHODS.has(request.method) ? request.method : "other";
      // Every other failure has its status. Only an answer that broke after a successful head needs its own label.
      const error = status < 400 ? errorType(ended) : undefined;
      counted.requests++;
      if (status >= 500 || (error !== undefined && error !== CALLER_LEFT.error)) counted.failedRequests++;
      requests.observe(
        bound("requests", {
          ...{ area: request.area, route: request.route, method, status: `${status}` },
          ...(error && { error_type: error }),
        }),
        (endedAt - beganAt) / 1000,
      );
    },
    recordCall({ source, facts, error, beganAt, endedAt }) {
      const call = { provider: facts.provider ?? "unknown", model: facts.model ?? "unknown" };
      counted.modelCalls++;
      counted.inputTokens += facts.inputTokens ?? 0;
      counted.outputTokens += facts.outputTokens ?? 0;
      operations.observe(
        bound("operations", { ...call, source, ...(error && { error_type: error }) }),
        (endedAt - beganAt) / 1000,
      );
      if (facts.inputTokens !== undefined) tokens.inc(bound("tokens", { ...call, type: "input", source }), facts.inputTokens);
      if (facts.outputTokens !== undefined) tokens.inc(bound("tokens", { ...call, type: "output", source }), facts.outputTokens);
    },
    recordWork({ kind, error, beganAt, endedAt }) {
      works.observe(bound("works", { kind, ...(error && { error_type: error }) }), (endedAt - beganAt) / 1000);
    },
  };
}

/** In a registry of their own: the gauges may change between two texts. */
async function textOf(read: readonly ReadGauge[]): Promise<string> {
  const registry = new prometheus.Registry();
  for (const { gauge, values } of read) {
    if (values.length === 0) continue;
    const labelNames = [...new Set(values.flatMap(({ labels }) => Object.keys(labels)))];
    const made = new prometheus.Gauge({ name: gauge.name, help: gauge.help, labelNames, registers: [registry] });
    for (const { labels, value } of values) made.set(labels, value);
  }
  return read.length === 0 ? "" : registry.metrics();
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Read at each scrape: no timer runs in between. */
function processMetrics(registers: prometheus.Registry[]): void {
  const gauge = (name: string, help: string, read: () => number) =>
    new prometheus.Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge("process_resident_memory_bytes", "Resident memory", () => process.memoryUsage.rss());
  gauge("process_heap_bytes", "Heap in use", () => process.memoryUsage().heapUsed);
  const processorTime = new prometheus.Counter({
    name: "process_cpu_seconds_total",
    help: "User and system time of the process",
    registers: [],
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  for (const registry of registers) registry.registerMetric(processorTime);
  gauge("process_uptime_seconds", "Time since the process began", () => process.uptime());
}
