import prometheus from "prom-client";
import type { EndedRequest } from "./opentelemetry/request-record.ts";

/** What was measured, for a Prometheus server that asks; fed by the adapter `telemetry/opentelemetry`, to which it is given. */
export interface PrometheusMetrics {
  /** Of the text. */
  readonly contentType: string;
  /** Everything so far, in Prometheus' text format. */
  text(): Promise<string>;
  record(ended: EndedRequest): void;
}

const HTTP_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const MODEL_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Metrics of one app. Labels are names that contracts and configurations declare, so that no caller can invent any. */
export function createPrometheusMetrics(): PrometheusMetrics {
  const registry = new prometheus.Registry();
  const registers = [registry];
  const requests = new prometheus.Histogram({
    name: "http_server_request_duration_seconds",
    help: "Duration of HTTP requests",
    labelNames: ["area", "route", "method", "status"],
    buckets: HTTP_SECONDS,
    registers,
  });
  const operations = new prometheus.Histogram({
    name: "gen_ai_client_operation_duration_seconds",
    help: "Duration of model calls through the proxy",
    labelNames: ["provider", "model"],
    buckets: MODEL_SECONDS,
    registers,
  });
  const tokens = new prometheus.Counter({
    name: "gen_ai_client_tokens_total",
    help: "Tokens that model calls through the proxy used, as far as providers report them",
    labelNames: ["provider", "model", "type"],
    registers,
  });
  processGauges(registers);

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    record({ request, facts, status, beganAt, endedAt }) {
      const seconds = (endedAt - beganAt) / 1000;
      const method = METHODS.has(request.method) ? request.method : "other";
      requests.observe({ area: request.area, route: request.route, method, status: `${status}` }, seconds);
      if (facts.operation === undefined) return;
      const call = { provider: facts.provider ?? "unknown", model: facts.model ?? "unknown" };
      operations.observe(call, seconds);
      if (facts.inputTokens !== undefined) tokens.inc({ ...call, type: "input" }, facts.inputTokens);
      if (facts.outputTokens !== undefined) tokens.inc({ ...call, type: "output" }, facts.outputTokens);
    },
  };
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Read when somebody asks: nothing runs in between. */
function processGauges(registers: prometheus.Registry[]): void {
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
  gauge("process_cpu_seconds_total", "User and system time of the process", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  gauge("process_uptime_seconds", "Time since the process began", () => process.uptime());
}
