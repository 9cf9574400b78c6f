import parsePrometheusTextFormat from "parse-prometheus-text-format";

/** The values of `GET /metrics` of the agent service that the overview shows. */
export interface Measurements {
  readonly requests: number;
  /** Requests with status 500 or higher, or whose response was interrupted. */
  readonly failures: number;
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly residentBytes: number | undefined;
  readonly uptimeSeconds: number | undefined;
}

/** Parses Prometheus' text format. Missing values count as zero, or are undefined if zero would be misleading. */
export function readMeasurements(text: string): Measurements {
  // Removes the lines with types, because the parser would merge a histogram's values for different labels.
  const samples = parsePrometheusTextFormat(text.replaceAll(/^#.*$/gm, "")).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => ({ name, labels, value: Number(value) })),
  );
  const of = (wanted: string) => samples.filter(({ name }) => name === wanted);
  const sum = (found: readonly { readonly value: number }[]) => found.reduce((total, { value }) => total + value, 0);

  const requests = of("http_server_request_duration_seconds_count");
  const tokens = of("gen_ai_client_tokens_total");
  return {
    requests: sum(requests),
    failures: sum(requests.filter(({ labels }) => isFailure(labels))),
    modelCalls: sum(of("gen_ai_client_operation_duration_seconds_count")),
    inputTokens: sum(tokens.filter(({ labels }) => labels["type"] === "input")),
    outputTokens: sum(tokens.filter(({ labels }) => labels["type"] === "output")),
    residentBytes: of("process_resident_memory_bytes")[0]?.value,
    uptimeSeconds: of("process_uptime_seconds")[0]?.value,
  };
}

/** An aborted request is not a failure of the service. */
function isFailure({ status, error_type: error }: Readonly<Record<string, string>>): boolean {
  return Number(status) >= 500 || (Number(status) < 400 && error !== undefined && error !== "caller_left");
}
