import { fromEnv, milliseconds, secret, withoutEnd } from "@portico/core";
import * as v from "valibot";

/** What is exported. */
export type OtlpSignal = "traces" | "metrics" | "logs";

/** All kinds of signals. */
export const OTLP_SIGNALS: readonly OtlpSignal[] = ["traces", "metrics", "logs"];

/** Times of the export, if no option says otherwise. */
export const OTLP_DEFAULTS = { timeoutMs: 10_000, metricsEveryMs: 60_000, spansEveryMs: 5_000, logsEveryMs: 1_000 };

const address = () => v.pipe(v.string(), v.check(isAddress, "an http or https address without user name, query and fragment"));

/** Export over OTLP. The variables are OpenTelemetry's own. */
const otlp = v.strictObject({
  endpoint: v.optional(
    fromEnv(
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      address(),
      "Base address of a receiver of OTLP over HTTP. `/v1/traces`, `/v1/metrics` and `/v1/logs` are appended. Without an address, nothing is exported.",
    ),
  ),
  tracesEndpoint: v.optional(
    fromEnv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address(), "Whole address for traces, instead of `endpoint`."),
  ),
  metricsEndpoint: v.optional(
    fromEnv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", address(), "Whole address for metrics, instead of `endpoint`."),
  ),
  logsEndpoint: v.optional(
    fromEnv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", address(), "Whole address for log lines, instead of `endpoint`."),
  ),
  signals: v.optional(fromEnv("PORTICO_OTLP_SIGNALS", v.array(v.picklist(OTLP_SIGNALS)), "What is exported."), [...OTLP_SIGNALS]),
  protocol: v.optional(
    fromEnv(
      "OTEL_EXPORTER_OTLP_PROTOCOL",
      v.picklist(["http/protobuf", "http/json"]),
      "Encoding of the exports. gRPC is not supported.",
    ),
    "http/protobuf",
  ),
  headers: v.optional(
    fromEnv(
      "OTEL_EXPORTER_OTLP_HEADERS",
      v.pipe(
        secret(),
        v.check(
          (headers) => areOtlpHeaders(headers.reveal()),
          "name=value pairs, separated by commas, with percent-encoded values",
        ),
      ),
      "Headers of each export, as `name=value,name=value` with percent-encoded values.",
    ),
  ),
  compression: v.optional(
    fromEnv("OTEL_EXPORTER_OTLP_COMPRESSION", v.picklist(["gzip", "none"]), "Compression of the exports."),
    "none",
  ),
  timeoutMs: v.optional(
    fromEnv("OTEL_EXPORTER_OTLP_TIMEOUT", milliseconds(1), "Timeout of each export, with its retries."),
    OTLP_DEFAULTS.timeoutMs,
  ),
  ca: v.optional(
    v.pipe(secret(), v.description("Authorities that sign the receiver's certificate, as PEM. Default: those of Node.js.")),
  ),
  metricsEveryMs: v.optional(
    fromEnv("OTEL_METRIC_EXPORT_INTERVAL", milliseconds(100), "Time between two exports of metrics."),
    OTLP_DEFAULTS.metricsEveryMs,
  ),
  spansEveryMs: v.optional(
    fromEnv("OTEL_BSP_SCHEDULE_DELAY", milliseconds(1), "Time for which spans wait for their export."),
    OTLP_DEFAULTS.spansEveryMs,
  ),
  logsEveryMs: v.optional(
    fromEnv("OTEL_BLRP_SCHEDULE_DELAY", milliseconds(1), "Time for which log lines wait for their export."),
    OTLP_DEFAULTS.logsEveryMs,
  ),
  sampleRatio: v.optional(
    fromEnv(
      "OTEL_TRACES_SAMPLER_ARG",
      v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
      "Share of the traces that is exported, from 0 to 1.",
    ),
    1,
  ),
});

/** Options of `openTelemetry` that presets have as settings: what a service reports to other systems, besides its log and `/metrics`. */
export const telemetrySettings = {
  serviceName: v.optional(
    fromEnv("OTEL_SERVICE_NAME", v.pipe(v.string(), v.nonEmpty()), "The name of the service in exported telemetry."),
    "portico",
  ),
  resourceAttributes: v.optional(
    fromEnv(
      "OTEL_RESOURCE_ATTRIBUTES",
      v.pipe(
        v.string(),
        v.check((pairs) => parsePairs(pairs) !== undefined, "name=value pairs, separated by commas, with percent-encoded values"),
      ),
      "Further attributes of the service, as `name=value,name=value`, such as `deployment.environment.name=production`.",
    ),
  ),
  content: v.optional(
    fromEnv(
      "PORTICO_TELEMETRY_CONTENT",
      v.boolean(),
      "Whether traces contain the prompts and answers of turns, and the arguments and results of tools. Everybody who can read the traces can then read them.",
    ),
    false,
  ),
  otlp: v.optional(otlp, {}),
};

/** Export over OTLP/HTTP. Names and defaults are those of OpenTelemetry's variables, such as `OTEL_EXPORTER_OTLP_*`. */
export type OtlpOptions = Partial<v.InferOutput<typeof otlp>>;

/** The service in exported telemetry. */
export interface ExportedService {
  /** Default `portico`. */
  readonly serviceName?: string | undefined;
  readonly serviceVersion?: string | undefined;
  /** Further attributes of the service: `name=value,name=value`, percent-encoded. */
  readonly resourceAttributes?: string | undefined;
}

/**
 * Parses `name=value,name=value` of OpenTelemetry's variables, where values are percent-encoded. Undefined if it is invalid. An
 * empty text has no pairs.
 */
export function parsePairs(text: string): Readonly<Record<string, string>> | undefined {
  const pairs: [string, string][] = [];
  for (const part of text.split(",")) {
    if (part.trim() === "") continue;
    const at = part.indexOf("=");
    const name = part.slice(0, at).trim();
    if (at < 1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return undefined;
    try {
      pairs.push([name, decodeURIComponent(part.slice(at + 1).trim())]);
    } catch {
      return undefined;
    }
  }
  return Object.fromEntries(pairs);
}

/** Whether a text is valid as `headers`. */
export function areOtlpHeaders(text: string): boolean {
  const pairs = parsePairs(text);
  return pairs !== undefined && Object.values(pairs).every((value) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value));
}

/** The address of each exported signal. */
export function addressesOf({
  signals,
  endpoint,
  tracesEndpoint: traces,
  metricsEndpoint: metrics,
  logsEndpoint: logs,
}: OtlpOptions): Readonly<Partial<Record<OtlpSignal, string>>> {
  const own = { traces, metrics, logs };
  const addresses: Partial<Record<OtlpSignal, string>> = {};
  for (const signal of signals ?? OTLP_SIGNALS) {
    const address = own[signal] ?? (endpoint && `${withoutEnd(endpoint, "/")}/v1/${signal}`);
    if (address) addresses[signal] = address;
  }
  return addresses;
}

function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
}
