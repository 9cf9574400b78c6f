import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import {
  createPrometheusMetrics,
  lastingSnapshot,
  type MetricsSnapshot,
  sumSnapshots,
} from "@portico/adapters/telemetry/prometheus";
import type { ports } from "@portico/core";
import { expect, it, onTestFinished } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { CALLERS } from "../../harness/callers.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { startProxy } from "../../harness/proxy-app.ts";

const REQUEST: ports.RequestBegin = {
  id: "req_1",
  area: "model-proxy",
  route: "model-proxy.messages",
  method: "POST",
  path: "/v1/messages",
  scheme: "http",
  header: () => undefined,
};
const CALL = { operation: "chat", provider: "main", model: "m-large" };
const OWN = { source: "agent", provider: "main", providerType: "vendor", model: "m-large", durationMs: 1500 };

/** The samples of model calls, and those of requests that ended with an error. */
async function samplesOf(tell: (telemetry: ports.Telemetry) => void): Promise<string[]> {
  const prometheus = createPrometheusMetrics();
  const { port, close } = await openAdapter(openTelemetry({ level: "silent", prometheus }));
  tell(port);
  await close();
  const lines = (await prometheus.text()).split("\n");
  return lines.filter((line) => /^gen_ai\w+(_count|_sum|_total)|^http\w+_count.*error_type/.test(line));
}

it("a model call of an agent or a workflow node counts as one of the proxy, told apart by its source", async () => {
  const samples = await samplesOf((telemetry) => {
    const trace = telemetry.begin(REQUEST);
    trace.note({ ...CALL, inputTokens: 7 });
    trace.end({ status: 200 });
    telemetry.modelCall({ ...OWN, inputTokens: 5, outputTokens: 3 });
    telemetry.modelCall({ ...OWN, source: "workflow", error: "ModelTimeout" });
  });
  const call = 'provider="main",model="m-large"';
  expect(samples.filter((line) => !line.includes('_sum{provider="main",model="m-large",source="proxy"'))).toEqual([
    `gen_ai_client_operation_duration_seconds_count{${call},source="proxy"} 1`,
    `gen_ai_client_operation_duration_seconds_sum{${call},source="agent"} 1.5`,
    `gen_ai_client_operation_duration_seconds_count{${call},source="agent"} 1`,
    `gen_ai_client_operation_duration_seconds_sum{${call},source="workflow",error_type="ModelTimeout"} 1.5`,
    `gen_ai_client_operation_duration_seconds_count{${call},source="workflow",error_type="ModelTimeout"} 1`,
    `gen_ai_client_tokens_total{${call},type="input",source="proxy"} 7`,
    `gen_ai_client_tokens_total{${call},type="input",source="agent"} 5`,
    `gen_ai_client_tokens_total{${call},type="output",source="agent"} 3`,
  ]);
});

it("a gauge that counts keeps what a process counted that has ended, and a gauge of a state does not", async () => {
  const counted = async (others?: () => Promise<readonly MetricsSnapshot[]>) => {
    const prometheus = createPrometheusMetrics(others);
    const { port, close } = await openAdapter(openTelemetry({ level: "silent", prometheus }));
    onTestFinished(close);
    port.gauge({
      name: "portico_acts",
      help: "How often it acted",
      isCount: true,
      read: () => [{ labels: { to: "a" }, value: 2 }],
    });
    port.gauge({ name: "portico_state", help: "How many it has", read: () => 3 });
    return prometheus;
  };
  const ended = lastingSnapshot(await (await counted()).snapshot());
  const twice = sumSnapshots([ended, ended]);
  const text = await (await counted(async () => [twice])).text();
  expect(text.split("\n").filter((line) => line.startsWith("portico_"))).toEqual(['portico_acts{to="a"} 6', "portico_state 3"]);
});

it.each([
  [{ status: 200, noted: "upstream_broken" }, "upstream_broken"],
  [{ status: 200, noted: "caller_left" }, "caller_left"],
  [{ status: 429 }, "429"],
  [{ status: 499 }, "caller_left"],
  [{ status: 504, error: "upstream_timeout" }, "upstream_timeout"],
])("a call that ended as %o is counted with the error %s", async ({ status, error, noted }: Ending, expected) => {
  const samples = await samplesOf((telemetry) => {
    const trace = telemetry.begin(REQUEST);
    trace.note({ ...CALL, ...(noted && { error: noted }) });
    trace.end({ status, ...(error && { error }) });
  });
  expect(samples).toContain(
    `gen_ai_client_operation_duration_seconds_count{provider="main",model="m-large",source="proxy",error_type="${expected}"} 1`,
  );
  // Of the request, only what its status does not say.
  const labels = `area="model-proxy",route="model-proxy.messages",method="POST",status="${status}"`;
  const request = `http_server_request_duration_seconds_count{${labels},error_type="${expected}"} 1`;
  expect(samples.filter((line) => line.startsWith("http"))).toEqual(noted ? [request] : []);
});

it("the counters add requests, model calls and tokens, and count answers that failed but not callers that left", async () => {
  const prometheus = createPrometheusMetrics();
  const { port, close } = await openAdapter(openTelemetry({ level: "silent", prometheus }));
  const ending = (status: number, error?: string) => port.begin(REQUEST).end({ status, ...(error && { error }) });
  ending(200);
  ending(404, "not_found");
  ending(499);
  ending(200, "caller_left");
  expect(await prometheus.counters()).toMatchObject({ requests: 4, failedRequests: 0 });
  ending(500);
  ending(200, "upstream_broken");
  port.modelCall({ ...OWN, inputTokens: 5, outputTokens: 3 });
  const trace = port.begin(REQUEST);
  trace.note({ ...CALL, inputTokens: 7 });
  trace.end({ status: 200 });
  const { residentBytes, uptimeSeconds, ...counted } = await prometheus.counters();
  expect(counted).toEqual({ requests: 7, failedRequests: 2, modelCalls: 2, inputTokens: 12, outputTokens: 3 });
  expect([residentBytes > 0, uptimeSeconds > 0]).toEqual([true, true]);
  await close();
});

interface Ending {
  readonly status: number;
  readonly error?: string;
  readonly noted?: string;
}

it("an instrument has a bound on its series, and counts everything beyond it in one", async () => {
  const samples = await samplesOf((telemetry) => {
    for (let at = 0; at < 5_000; at++) telemetry.modelCall({ ...OWN, model: `m-${at}` });
  });
  const counts = samples.filter((line) => line.startsWith("gen_ai_client_operation_duration_seconds_count"));
  expect(counts).toHaveLength(2_001);
  expect(counts).toContain('gen_ai_client_operation_duration_seconds_count{provider="other",model="other",source="other"} 3000');
});

it("a model that no provider serves is no label, whatever name its caller invents", async () => {
  const prometheus = createPrometheusMetrics();
  const upstream = await startFakeUpstream();
  onTestFinished(() => upstream.close());
  await using proxy = await startProxy({
    providers: [{ protocol: "messages", upstream }],
    telemetry: openTelemetry({ level: "silent", prometheus }),
  });
  for (const { path, request } of Object.values(CALLERS)) {
    const answer = await proxy.post(path, request("hello", { model: "invented" }));
    expect(answer.status).toBe(400);
  }
  await expect.poll(() => prometheus.text()).toContain('model="unknown"');
  expect(await prometheus.text()).not.toContain("invented");
});
