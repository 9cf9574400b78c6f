import { type Secret, withoutEnd } from "@portico/core";

/** What is exported. */
export type OtlpSignal = "traces" | "metrics" | "logs";

/** All kinds of signals. */
export const OTLP_SIGNALS: readonly OtlpSignal[] = ["traces", "metrics", "logs"];

/** Export over OTLP/HTTP. Names and defaults are those of OpenTelemetry's variables, such as `OTEL_EXPORTER_OTLP_*`. */
export interface OtlpOptions {
  /** Base address of the receiver. `/v1/traces`, `/v1/metrics` and `/v1/logs` are appended. */
  readonly endpoint?: string | undefined;
  /** Whole addresses of single signals. They replace `endpoint`. A signal without an address is not exported. */
  readonly endpoints?: Readonly<Partial<Record<OtlpSignal, string | undefined>>>;
  /** Default: all. */
  readonly signals?: readonly OtlpSignal[];
  /** Default `http/protobuf`. */
  readonly protocol?: "http/protobuf" | "http/json";
  /** Headers of each request: `name=value,name=value`, percent-encoded. */
  readonly headers?: Secret | undefined;
  /** Default `none`. */
  readonly compression?: "gzip" | "none";
  /** Timeout of each export, with its retries. Default: 10 s. */
  readonly timeoutMs?: number;
  /** PEM of the authorities that sign the receiver's certificate. Default: those of Node.js. */
  readonly ca?: Secret | undefined;
  /** Time between two exports of metrics. Default: one minute. */
  readonly metricsEveryMs?: number;
  /** Milliseconds for which spans wait for their export. Default: 5 s. */
  readonly spansEveryMs?: number;
  /** Milliseconds for which log lines wait for their export. Default: 1 s. */
  readonly logsEveryMs?: number;
  /** Share of the traces that is exported, 0 to 1. Default 1. Traces that the caller does not record are not exported. */
  readonly sampleRatio?: number;
  /** Default `portico`. */
  readonly serviceName?: string;
  readonly serviceVersion?: string | undefined;
  /** Further attributes of the resource: `name=value,name=value`, percent-encoded. */
  readonly resource?: string | undefined;
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
  endpoint,
  endpoints = {},
  signals = OTLP_SIGNALS,
}: OtlpOptions): Readonly<Partial<Record<OtlpSignal, string>>> {
  const addresses: Partial<Record<OtlpSignal, string>> = {};
  for (const signal of signals) {
    const address = endpoints[signal] ?? (endpoint && `${withoutEnd(endpoint, "/")}/v1/${signal}`);
    if (address) addresses[signal] = address;
  }
  return addresses;
}
