import { areOtlpHeaders, OTLP_SIGNALS, parsePairs } from "@portico/adapters/telemetry/otlp-options";
import { fromEnv, milliseconds, secret } from "@portico/core";
import * as v from "valibot";
import { text } from "./scalar.ts";

const address = () => v.pipe(v.string(), v.check(isAddress, "an http or https address without user name, query and fragment"));

/** Export over OTLP. The variables are OpenTelemetry's own. */
const otlpSchema = v.strictObject({
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
    10_000,
  ),
  ca: v.optional(
    v.pipe(secret(), v.description("Authorities that sign the receiver's certificate, as PEM. Default: those of Node.js.")),
  ),
  metricsEveryMs: v.optional(
    fromEnv("OTEL_METRIC_EXPORT_INTERVAL", milliseconds(100), "Time between two exports of metrics."),
    60_000,
  ),
  spansEveryMs: v.optional(
    fromEnv("OTEL_BSP_SCHEDULE_DELAY", milliseconds(1), "Time for which spans wait for their export."),
    5_000,
  ),
  logsEveryMs: v.optional(
    fromEnv("OTEL_BLRP_SCHEDULE_DELAY", milliseconds(1), "Time for which log lines wait for their export."),
    1_000,
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

/** What the service reports to other systems, besides its log and `/metrics`. */
export const telemetrySchema = v.optional(
  v.strictObject({
    serviceName: v.optional(fromEnv("OTEL_SERVICE_NAME", text(), "The name of the service in exported telemetry."), "portico"),
    resourceAttributes: v.optional(
      fromEnv(
        "OTEL_RESOURCE_ATTRIBUTES",
        v.pipe(
          v.string(),
          v.check(
            (pairs) => parsePairs(pairs) !== undefined,
            "name=value pairs, separated by commas, with percent-encoded values",
          ),
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
    otlp: v.optional(otlpSchema, {}),
  }),
  {},
);

/** The settings of exported telemetry, after parsing. */
export type TelemetrySettings = v.InferOutput<typeof telemetrySchema>;

function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
}
