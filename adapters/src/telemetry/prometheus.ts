import prometheus from "prom-client";
import { boundSeries, type Gauges, type ReadGauge } from "./gauges.ts";
import { CALLER_LEFT, type EndedCall, type EndedRequest, type EndedWork, errorType } from "./opentelemetry/request-record.ts";

/** Metrics for a Prometheus server to scrape. Pass them to the adapter `telemetry/opentelemetry`, which feeds them. */
export interface PrometheusMetrics {
  /** Content type of the text. */
  readonly contentType: string;
  /** All metrics so far, in Prometheus' text format. Those of `others` are added. */
  text(): Promise<string>;
  /** Sums of this process and of `others` since their start, and their present memory. */
  counters(): Promise<ProcessCounters>;
  /** What this process measured so far, for the `others` of another process. */
  snapshot(): Promise<MetricsSnapshot>;
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

/** What one process measured, as plain data for a message to another process. */
export interface MetricsSnapshot {
  /** Each metric with its series. */
  readonly metrics: readonly object[];
  readonly counters: ProcessCounters;
}

/** Reads what other processes of the same instance measured, also those that have ended. */
export type ReadSnapshots = () => Promise<readonly MetricsSnapshot[]>;

const HTTP_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const MODEL_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/**
 * Metrics of one app. Labels are names from contracts and configurations, so that callers cannot invent any. Each instrument has at most 2,000
 * series.
 *
 * @param others Reads what other processes of the app measured: their counts, histograms and gauges are added. Default: this is the only process.
 */
export function createPrometheusMetrics(others?: ReadSnapshots): PrometheusMetrics {
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

  const readGauges = async () => (await Promise.all(collected.map((gauges) => gauges.read()))).flat();
  const own = (): ProcessCounters => ({ ...counted, residentBytes: process.memoryUsage.rss(), uptimeSeconds: process.uptime() });
  const snapshot = async (): Promise<MetricsSnapshot> => {
    const read = await readGauges();
    const counts = new Set(read.flatMap(({ gauge }) => (gauge.isCount ? [gauge.name] : [])));
    const gauges = (await registryOf(read).getMetricsAsJSON()).map((each) =>
      counts.has(each.name) ? { ...each, isCount: true } : each,
    );
    return { metrics: [...(await registry.getMetricsAsJSON()), ...gauges], counters: own() };
  };

  return {
    contentType: registry.contentType,
    async text() {
      if (others) return textOf(sumSnapshots([await snapshot(), ...(await others())]));
      const gauges = registryOf(await readGauges());
      return (await registry.metrics()) + (gauges.getMetricsAsArray().length > 0 ? await gauges.metrics() : "");
    },
    counters: async () => sumCounters([own(), ...((await others?.()) ?? []).map(({ counters }) => counters)]),
    snapshot,
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

/** One snapshot with the sums of several. */
export function sumSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const byName = Map.groupBy(
    snapshots.flatMap(({ metrics }) => metrics as readonly StoredMetric[]),
    ({ name }) => name,
  );
  return {
    metrics: [...byName.values()].map(sumMetrics),
    counters: sumCounters(snapshots.map(({ counters }) => counters)),
  };
}

/** The part that stays when a process has ended: its counts and histograms, without its present state. */
export function lastingSnapshot({ metrics, counters }: MetricsSnapshot): MetricsSnapshot {
  return {
    metrics: (metrics as readonly StoredMetric[]).filter(({ type, isCount }) => type !== "gauge" || isCount),
    counters: { ...counters, residentBytes: 0, uptimeSeconds: 0 },
  };
}

/** A metric as prom-client stores it as JSON. */
interface StoredMetric {
  readonly name: string;
  readonly type: string;
  readonly aggregator: string;
  /** Of a gauge that counts. */
  readonly isCount?: boolean;
  readonly values: readonly {
    readonly value: number;
    readonly labels: Labels;
    readonly metricName?: string;
  }[];
}

type Labels = Readonly<Record<string, string | number>>;

function sumMetrics(same: readonly StoredMetric[]): StoredMetric {
  const series = new Map<string, StoredMetric["values"][number]>();
  const isMost = same[0]!.aggregator === "max";
  for (const value of same.flatMap(({ values }) => values)) {
    const key = JSON.stringify([
      value.metricName,
      ...Object.entries(value.labels).toSorted(([one], [other]) => (one < other ? -1 : 1)),
    ]);
    const before = series.get(key)?.value;
    const sum = before === undefined ? value.value : isMost ? Math.max(before, value.value) : before + value.value;
    series.set(key, { ...value, value: sum });
  }
  return { ...same[0]!, values: [...series.values()] };
}

function sumCounters(all: readonly ProcessCounters[]): ProcessCounters {
  const sum = (name: keyof ProcessCounters) => all.reduce((total, each) => total + each[name], 0);
  return {
    requests: sum("requests"),
    failedRequests: sum("failedRequests"),
    modelCalls: sum("modelCalls"),
    inputTokens: sum("inputTokens"),
    outputTokens: sum("outputTokens"),
    residentBytes: sum("residentBytes"),
    uptimeSeconds: Math.max(...all.map(({ uptimeSeconds }) => uptimeSeconds)),
  };
}

function textOf({ metrics }: MetricsSnapshot): Promise<string> {
  return prometheus.AggregatorRegistry.aggregate([[...metrics]]).metrics();
}

/** In a registry of their own: the gauges may change between two texts. */
function registryOf(read: readonly ReadGauge[]): prometheus.Registry {
  const registry = new prometheus.Registry();
  for (const { gauge, values } of read) {
    if (values.length === 0) continue;
    const labelNames = [...new Set(values.flatMap(({ labels }) => Object.keys(labels)))];
    const made = new prometheus.Gauge({ name: gauge.name, help: gauge.help, labelNames, registers: [registry] });
    for (const { labels, value } of values) made.set(labels, value);
  }
  return registry;
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Read at each scrape: no timer runs in between. */
function processMetrics(registers: prometheus.Registry[]): void {
  const gauge = (name: string, help: string, read: () => number, aggregator: prometheus.Aggregator = "sum") =>
    new prometheus.Gauge({
      name,
      help,
      registers,
      aggregator,
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
  gauge("process_uptime_seconds", "Time since the process began", () => process.uptime(), "max");
}
