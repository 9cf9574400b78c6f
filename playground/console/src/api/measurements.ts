import parsePrometheusTextFormat from "parse-prometheus-text-format";

/** What `GET /metrics` of the agent service says, as far as the overview shows it. */
export interface Measurements {
  readonly requests: number;
  /** Requests that were answered with 500 or more. */
  readonly failures: number;
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly residentBytes: number | undefined;
  readonly uptimeSeconds: number | undefined;
}

/** Of Prometheus' text format. What it does not have counts as zero, or is undefined where zero would be a claim. */
export function readMeasurements(text: string): Measurements {
  // Without the lines that tell types: the parser would put what a histogram says of different labels together.
  const samples = parsePrometheusTextFormat(text.replaceAll(/^#.*$/gm, "")).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => ({ name, labels, value: Number(value) })),
  );
  const of = (wanted: string) => samples.filter(({ name }) => name === wanted);
  const sum = (found: readonly { readonly value: number }[]) => found.reduce((total, { value }) => total + value, 0);

  const requests = of("http_server_request_duration_seconds_count");
  const tokens = of("gen_ai_client_tokens_total");
  return {
    requests: sum(requests),
    failures: sum(requests.filter(({ labels }) => Number(labels["status"]) >= 500)),
    modelCalls: sum(of("gen_ai_client_operation_duration_seconds_count")),
    inputTokens: sum(tokens.filter(({ labels }) => labels["type"] === "input")),
    outputTokens: sum(tokens.filter(({ labels }) => labels["type"] === "output")),
    residentBytes: of("process_resident_memory_bytes")[0]?.value,
    uptimeSeconds: of("process_uptime_seconds")[0]?.value,
  };
}
