import type { Meter, ObservableResult } from "@opentelemetry/api";
import type { ports } from "@portico/core";
import { boundSeries, readGauge } from "../gauges.ts";
import { type EndedCall, type EndedRequest, type EndedWork, errorType, httpMethod } from "./request-record.ts";

export interface Measures {
  record(ended: EndedRequest): void;
  recordCall(ended: EndedCall): void;
  recordWork(ended: EndedWork): void;
  /** Read the gauge at each collection, until the returned function is called. */
  observe(gauge: ports.Gauge): () => void;
}

const NOTHING_MEASURED: Measures = { record() {}, recordCall() {}, recordWork() {}, observe: () => () => {} };

type Labels = Readonly<Record<string, string | number>>;

const HTTP_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const MODEL_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864];

/** Histograms with the names and bucket boundaries of the semantic conventions. In seconds, not milliseconds. */
export function createMeasures(meter: Meter | undefined): Measures {
  if (!meter) return NOTHING_MEASURED;
  const bound = boundSeries();
  const histogram = (name: string, unit: string, description: string, explicitBucketBoundaries: number[]) => {
    const made = meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries } });
    return { record: (value: number, labels: Labels) => made.record(value, bound(name, labels)) };
  };

  const requests = histogram("http.server.request.duration", "s", "Duration of HTTP requests", HTTP_SECONDS);
  const operations = histogram("gen_ai.client.operation.duration", "s", "Duration of model calls", MODEL_SECONDS);
  const firstChunks = histogram(
    "gen_ai.client.operation.time_to_first_chunk",
    "s",
    "Time to a stream's first chunk",
    MODEL_SECONDS,
  );
  const tokens = histogram("gen_ai.client.token.usage", "{token}", "Tokens that model calls used", TOKENS);

  const works = histogram("portico.work.duration", "s", "Duration of turns, tool calls, runs and nodes", MODEL_SECONDS);

  return {
    record(ended) {
      const { request, status, beganAt, endedAt } = ended;
      const seconds = (endedAt - beganAt) / 1000;
      requests.record(seconds, {
        "http.request.method": httpMethod(request.method),
        "url.scheme": request.scheme,
        "http.response.status_code": status,
        ...(request.path !== "" && { "http.route": request.path }),
        ...(errorType(ended) && { "error.type": errorType(ended) }),
      });
    },
    recordCall({ source, facts, operation, error, beganAt, endedAt }) {
      const call: Labels = {
        "portico.source": source,
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": facts.providerType ?? "unknown",
        ...(facts.model !== undefined && { "gen_ai.request.model": facts.model }),
      };
      operations.record((endedAt - beganAt) / 1000, { ...call, ...(error && { "error.type": error }) });
      if (facts.streamed && facts.firstByteMs !== undefined) firstChunks.record(facts.firstByteMs / 1000, call);
      // A missing number does not mean zero (specification 4.1): no value is recorded then.
      if (facts.inputTokens !== undefined) tokens.record(facts.inputTokens, { ...call, "gen_ai.token.type": "input" });
      if (facts.outputTokens !== undefined) tokens.record(facts.outputTokens, { ...call, "gen_ai.token.type": "output" });
    },
    recordWork({ kind, error, beganAt, endedAt }) {
      works.record((endedAt - beganAt) / 1000, { "portico.work.kind": kind, ...(error && { "error.type": error }) });
    },
    observe(gauge) {
      const observable = meter.createObservableGauge(gauge.name, { description: gauge.help });
      const tell = async (result: ObservableResult): Promise<void> => {
        for (const { value, labels } of await readGauge(gauge)) result.observe(value, labels);
      };
      observable.addCallback(tell);
      return () => observable.removeCallback(tell);
    },
  };
}
