import { type Context, context, metrics, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  type HistogramMetricData,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  StackContextManager,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import type { ports } from "@portico/core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const CALLER_SPAN = "b7ad6b7169203331";
const HOUR_MS = 3_600_000;

const spans = new InMemorySpanExporter();
const readings = new InMemoryMetricExporter(AggregationTemporality.DELTA);
const meters = new MeterProvider({
  readers: [new PeriodicExportingMetricReader({ exporter: readings, exportIntervalMillis: HOUR_MS })],
});

beforeAll(() => {
  context.setGlobalContextManager(new StackContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }));
  metrics.setGlobalMeterProvider(meters);
});
afterEach(async () => {
  await meters.forceFlush();
  spans.reset();
  readings.reset();
});
afterAll(async () => {
  await meters.shutdown();
  for (const api of [context, propagation, trace, metrics]) api.disable();
});

describe("spans", () => {
  it("names a request after its method and declared path, never after the path that was called", async () => {
    await tell({}, { status: 200 });
    const [span] = spans.getFinishedSpans();
    expect(span).toMatchObject({ name: "POST /v1/messages", kind: SpanKind.SERVER, status: { code: SpanStatusCode.UNSET } });
    expect(span!.attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/v1/messages",
      "http.response.status_code": 200,
      "url.scheme": "http",
      "portico.request.id": "req_1",
      "portico.area": "model-proxy",
      "portico.route": "model-proxy.messages",
    });
  });

  it("have a separate client span for the model call, with the names of the generative-AI conventions", async () => {
    await tell(CALL, { status: 200 });
    const [call, request] = spans.getFinishedSpans();
    expect(call).toMatchObject({ name: "chat m-large", kind: SpanKind.CLIENT, status: { code: SpanStatusCode.UNSET } });
    expect(call!.parentSpanContext?.spanId).toBe(request!.spanContext().spanId);
    expect(call!.attributes).toEqual({
      "portico.source": "proxy",
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "anthropic",
      "gen_ai.request.model": "m-large",
      "gen_ai.usage.input_tokens": 11,
      "gen_ai.usage.output_tokens": 22,
      "gen_ai.response.time_to_first_chunk": 0.25,
      "portico.provider": "main",
      "portico.converted": true,
    });
  });

  it("of a model call names what was left out of its request, in at most 200 characters", async () => {
    const { port, close } = await openAdapter(openTelemetry({ level: "silent" }));
    const call = { source: "agent", provider: "main", providerType: "vendor", model: "m-large", durationMs: 1 };
    port.modelCall({ ...call, dropped: ["messages.content.image", "temperature"] });
    port.modelCall({ ...call, dropped: ["x".repeat(5_000)] });
    port.modelCall(call);
    await close();
    expect(spans.getFinishedSpans().map(({ attributes }) => attributes["portico.dropped"])).toEqual([
      "messages.content.image, temperature",
      `${"x".repeat(200)}…`,
      undefined,
    ]);
  });

  it("hangs under the caller's traceparent", async () => {
    await tell(
      {},
      { status: 200 },
      { header: (name) => (name === "traceparent" ? `00-${TRACE_ID}-${CALLER_SPAN}-01` : undefined) },
    );
    const [span] = spans.getFinishedSpans();
    expect(span!.spanContext().traceId).toBe(TRACE_ID);
    expect(span!.parentSpanContext).toMatchObject({ spanId: CALLER_SPAN, isRemote: true });
  });

  it("is a child of the host's active span, also if the caller names another parent", async () => {
    const host = trace.getTracer("host").startSpan("host");
    await tell({}, { status: 200 }, { header: () => `00-${TRACE_ID}-${CALLER_SPAN}-01` }, trace.setSpan(context.active(), host));
    expect(spans.getFinishedSpans()[0]!.parentSpanContext?.spanId).toBe(host.spanContext().spanId);
  });

  it.each([
    {
      outcome: { status: 404, error: "not_found" },
      request: SpanStatusCode.UNSET,
      call: SpanStatusCode.ERROR,
      type: "not_found",
    },
    {
      outcome: { status: 502, error: "bad_gateway" },
      request: SpanStatusCode.ERROR,
      call: SpanStatusCode.ERROR,
      type: "bad_gateway",
    },
    { outcome: { status: 500 }, request: SpanStatusCode.ERROR, call: SpanStatusCode.ERROR, type: "500" },
    {
      outcome: { status: 200, error: "answer_broken" },
      request: SpanStatusCode.ERROR,
      call: SpanStatusCode.ERROR,
      type: "answer_broken",
    },
    {
      outcome: { status: 200, error: "caller_left" },
      request: SpanStatusCode.UNSET,
      call: SpanStatusCode.ERROR,
      type: "caller_left",
    },
  ])(
    "marks $outcome as an error of the call, and of the request only where the server is at fault",
    async ({ outcome, ...expected }) => {
      await tell(CALL, outcome);
      const [call, request] = spans.getFinishedSpans();
      expect([request!.status.code, call!.status.code]).toEqual([expected.request, expected.call]);
      expect([request!.attributes["error.type"], call!.attributes["error.type"]]).toEqual([expected.type, expected.type]);
    },
  );

  it("covers the whole request with both", async () => {
    await tell(CALL, { status: 200 });
    const [call, request] = spans.getFinishedSpans() as [ReadableSpan, ReadableSpan];
    expect(call.startTime).toEqual(request.startTime);
    expect(call.endTime).toEqual(request.endTime);
  });

  it("contain only methods that the conventions know, and a path only if the request has one", async () => {
    await tell({}, { status: 404 }, { method: "BREW", path: "" });
    const [span] = spans.getFinishedSpans();
    expect(span!.name).toBe("HTTP");
    expect(span!.attributes).toMatchObject({ "http.request.method": "_OTHER" });
    expect(span!.attributes).not.toHaveProperty("http.route");
  });

  it("keeps a text that a caller chose at the length of a name", async () => {
    await tell({ ...CALL, model: "m".repeat(5000) }, { status: 200 });
    expect(String(spans.getFinishedSpans()[0]!.attributes["gen_ai.request.model"]).length).toBeLessThan(210);
  });
});

it("gauges of one name are one metric, and each gives its own numbers until it is removed", async () => {
  const { port, close } = await openAdapter(openTelemetry({ level: "silent" }));
  const gauge = (room: string, value: number): ports.Gauge => ({
    ...{ name: "rooms_free", help: "Free rooms" },
    read: () => [{ labels: { room }, value }],
  });
  const [remove, removeLast] = [port.gauge(gauge("a", 1)), port.gauge(gauge("b", 2))];
  const read = async () => {
    readings.reset();
    const numbers = (await histograms()).filter(({ descriptor }) => descriptor.name === "rooms_free");
    return numbers.map(({ dataPoints }) => dataPoints.map(({ attributes, value }) => [attributes["room"], value]));
  };
  expect(await read()).toEqual([
    [
      ["a", 1],
      ["b", 2],
    ],
  ]);
  remove();
  expect(await read()).toEqual([[["b", 2]]]);
  removeLast();
  await close();
});

describe("spans of work", () => {
  const turn = { kind: "turn", agent: "a", run: "run_1", turn: "turn_1", traceparent: undefined } as const;
  const worked = async (options: Parameters<typeof openTelemetry>[0]) => {
    const { port, close } = await openAdapter(openTelemetry({ level: "silent", ...options }));
    const whole = port.work({ ...turn, beganMsAgo: 500 });
    whole.run(() => {
      port.work({ kind: "phase", phase: "queue", beganMsAgo: 400, lastedMs: 300 }).end();
      const tool = port.work({ kind: "tool", tool: "Look", source: "s" });
      tool.content?.(() => ({ input: { query: "a question" }, output: [{ type: "text", text: "x".repeat(20_000) }] }));
      tool.end();
    });
    whole.content?.(() => ({ input: "Hello", output: "Good day" }));
    whole.end();
    whole.content?.(() => ({ input: "too late" }));
    await close();
    const named = (name: string) => spans.getFinishedSpans().find((span) => span.name === name)!;
    return { whole: named("invoke_agent a"), queue: named("queue"), tool: named("execute_tool Look") };
  };
  const ms = ([seconds, nanos]: readonly [number, number]) => seconds * 1000 + nanos / 1e6;

  it("begin a turn at its arrival, and have its parts at their times", async () => {
    const { whole, queue } = await worked({});
    expect(ms(whole.duration)).toBeGreaterThanOrEqual(499);
    expect(ms(queue.duration)).toBeCloseTo(300, 0);
    expect(ms(queue.startTime)).toBeGreaterThanOrEqual(ms(whole.startTime));
    expect(queue.parentSpanContext?.spanId).toBe(whole.spanContext().spanId);
    expect(queue.attributes).toEqual({ "portico.phase": "queue" });
  });

  it("have no content without the setting", async () => {
    const { whole, tool } = await worked({});
    expect(JSON.stringify([whole.attributes, tool.attributes])).not.toMatch(/Hello|Good day|question|xxx/);
  });

  it("have the content of turns and tools with the setting, cut, by the names of the conventions", async () => {
    const { whole, tool } = await worked({ content: true });
    expect(whole.attributes).toMatchObject({
      "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: "Hello" }] }]),
      "gen_ai.output.messages": JSON.stringify([{ role: "assistant", parts: [{ type: "text", content: "Good day" }] }]),
    });
    expect(tool.attributes["gen_ai.tool.call.arguments"]).toBe('{"query":"a question"}');
    expect(String(tool.attributes["gen_ai.tool.call.result"])).toHaveLength(16 * 1024 + 1);
  });
});

describe("metrics", () => {
  it("counts every request in seconds, by method, declared path and status", async () => {
    await tell({}, { status: 200 });
    const [request] = await histograms();
    expect(request!.descriptor).toMatchObject({ name: "http.server.request.duration", unit: "s" });
    expect(request!.dataPoints[0]!.value.buckets.boundaries).toEqual([
      0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
    ]);
    expect(request!.dataPoints).toHaveLength(1);
    expect(request!.dataPoints[0]!.attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/v1/messages",
      "http.response.status_code": 200,
      "url.scheme": "http",
    });
    expect(request!.dataPoints[0]!.value.sum).toBeLessThan(60);
  });

  it("counts model calls, their tokens by type, and a stream's first chunk", async () => {
    await tell(CALL, { status: 200 });
    const call = {
      "portico.source": "proxy",
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "anthropic",
      "gen_ai.request.model": "m-large",
    };
    const told = (await histograms()).filter(({ descriptor }) => descriptor.name.startsWith("gen_ai."));
    expect(
      told.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        descriptor.unit,
        ...dataPoints.map(({ attributes, value }) => [
          attributes,
          descriptor.name.endsWith("operation.duration") ? "measured" : value.sum,
        ]),
      ]),
    ).toEqual([
      ["gen_ai.client.operation.duration", "s", [call, "measured"]],
      ["gen_ai.client.operation.time_to_first_chunk", "s", [call, 0.25]],
      [
        "gen_ai.client.token.usage",
        "{token}",
        [{ ...call, "gen_ai.token.type": "input" }, 11],
        [{ ...call, "gen_ai.token.type": "output" }, 22],
      ],
    ]);
  });

  it("have no first-chunk time for answers that are not streams, and no unreported token counts", async () => {
    await tell({ operation: "chat", firstByteMs: 250 }, { status: 200 });
    expect((await histograms()).map(({ descriptor }) => descriptor.name)).toEqual([
      "http.server.request.duration",
      "gen_ai.client.operation.duration",
    ]);
  });

  it("names the error of what failed", async () => {
    await tell(CALL, { status: 502, error: "bad_gateway" });
    const durations = (await histograms()).filter(({ descriptor }) => descriptor.name.endsWith(".duration"));
    expect(durations.map(({ dataPoints }) => dataPoints[0]!.attributes["error.type"])).toEqual(["bad_gateway", "bad_gateway"]);
  });
});

const CALL: ports.RequestFacts = {
  operation: "chat",
  provider: "main",
  providerType: "anthropic",
  model: "m-large",
  converted: true,
  streamed: true,
  inputTokens: 11,
  outputTokens: 22,
  firstByteMs: 250,
};

/** One request from begin to end. */
async function tell(
  facts: ports.RequestFacts,
  outcome: { readonly status: number; readonly error?: string },
  more: Partial<ports.RequestBegin> = {},
  within: Context = context.active(),
): Promise<void> {
  const { port, close } = await openAdapter(openTelemetry({ level: "silent" }));
  const begin: ports.RequestBegin = {
    id: "req_1",
    area: "model-proxy",
    route: "model-proxy.messages",
    method: "POST",
    path: "/v1/messages",
    scheme: "http",
    header: () => undefined,
    ...more,
  };
  const request = context.with(within, () => port.begin(begin));
  request.note(facts);
  request.end(outcome);
  await close();
}

async function histograms(): Promise<HistogramMetricData[]> {
  await meters.forceFlush();
  return readings
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap((scope) => scope.metrics as HistogramMetricData[])
    .filter(({ dataPoints }) => dataPoints.length > 0);
}
