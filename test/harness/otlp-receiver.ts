import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

/** A value of OTLP's JSON encoding, as far as tests look at it. */
interface AnyValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
}
interface Attributed {
  readonly attributes?: readonly { readonly key: string; readonly value: AnyValue }[];
}
type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly attributes: Attributes;
  /** Of the process that sent it. */
  readonly resource: Attributes;
}

export interface ReceivedLog {
  readonly severity: string;
  readonly body: string;
  readonly attributes: Attributes;
  readonly traceId: string | undefined;
}

/** A receiver of OTLP over HTTP in JSON, in this process. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly endpoint: string;
  readonly spans: readonly ReceivedSpan[];
  readonly logs: readonly ReceivedLog[];
  /** Names of metrics, with the attributes of their points. */
  readonly metrics: ReadonlyMap<string, readonly Attributes[]>;
  /** Headers of all requests. */
  readonly headers: readonly IncomingMessage["headers"][];
  /** Everything that arrived, as text. */
  readonly text: string;
  /** Bodies as they arrived, where their encoding is not JSON. */
  readonly binaries: readonly Buffer[];
  /** The answer to later requests: a status, or no answer. */
  answer: number | "never";
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const logs: ReceivedLog[] = [];
  const metrics = new Map<string, Attributes[]>();
  const headers: IncomingMessage["headers"][] = [];
  const binaries: Buffer[] = [];
  const state = { text: "", answer: 200 as number | "never" };
  const accept = (path: string, body: any) => {
    for (const { resource, scopeSpans } of body.resourceSpans ?? [])
      for (const span of scopeSpans.flatMap((scope: any) => scope.spans))
        spans.push({
          ...{ traceId: span.traceId, spanId: span.spanId, name: span.name },
          parentSpanId: span.parentSpanId || undefined,
          attributes: attributesOf(span),
          resource: attributesOf(resource),
        });
    for (const { scopeLogs } of body.resourceLogs ?? [])
      for (const record of scopeLogs.flatMap((scope: any) => scope.logRecords))
        logs.push({
          ...{ severity: record.severityText, body: record.body.stringValue, attributes: attributesOf(record) },
          traceId: record.traceId || undefined,
        });
    for (const { scopeMetrics } of body.resourceMetrics ?? [])
      for (const metric of scopeMetrics.flatMap((scope: any) => scope.metrics)) {
        const points = (metric.histogram ?? metric.gauge ?? metric.sum).dataPoints as Attributed[];
        metrics.set(metric.name, [...(metrics.get(metric.name) ?? []), ...points.map(attributesOf)]);
      }
    if (!/^\/v1\/(traces|metrics|logs)$/.test(path)) throw new Error(`Unexpected path ${path}`);
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (state.answer === "never") return;
      headers.push(request.headers);
      if (state.answer === 200) {
        const sent = Buffer.concat(chunks);
        const bytes = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
        state.text += bytes.toString("latin1");
        if (request.headers["content-type"] === "application/json") accept(request.url!, JSON.parse(bytes.toString()));
        else binaries.push(bytes);
      }
      response.writeHead(state.answer, { "content-type": "application/json" }).end("{}");
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ spans, logs, metrics, headers, binaries },
    get text() {
      return state.text;
    },
    get answer() {
      return state.answer;
    },
    set answer(answer) {
      state.answer = answer;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function attributesOf({ attributes = [] }: Attributed): Attributes {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? Number(value.intValue ?? value.doubleValue),
    ]),
  );
}
