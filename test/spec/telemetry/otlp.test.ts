import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { connectAgent } from "@portico/client";
import { createApp } from "@portico/core";
import { ExportHealth } from "@portico/adapters/telemetry/otlp/export-health";
import { openOtlp } from "@portico/adapters/telemetry/otlp/open-otlp";
import { local, readPlatformOptions } from "@portico/presets/local";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_WORKFLOW, clusterPlace, startCluster } from "../../harness/cluster.ts";
import { writeDocuments } from "../../harness/cluster-documents.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { checkedLines } from "../../harness/log-line-check.ts";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../../harness/otlp-receiver.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const traceparent = `00-${TRACE}-${CALLER}-01`;
const PROMPT = "a-prompt-that-no-export-may-have";
const OWNER = "owner-token-that-no-export-may-have";
const HEADER = "header-value-that-no-log-may-have";
const FAST = { OTEL_BSP_SCHEDULE_DELAY: "100", OTEL_BLRP_SCHEDULE_DELAY: "100" };

/** A service that remembers the trace contexts of its callers. */
async function startOtherService() {
  const traceparents: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    traceparents.push(request.headers["traceparent"] as string | undefined);
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, traceparents, [Symbol.asyncDispose]: async () => void server.close() };
}

describe("a service with an endpoint of OTLP and telemetry.content", () => {
  it("exports the prompt and answer of a turn, and the arguments of its tools; its timeline has neither", async () => {
    await using receiver = await startOtlpReceiver();
    await using upstream = await startFakeUpstream();
    const folder = temporaryFolder();
    mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper", tools: ["SendUserMessage"] }));
    await using service = await startPortico({
      cwd: folder.path,
      hasOwnProcess: true,
      env: FAST,
      config: {
        telemetry: { content: true, otlp: { endpoint: receiver.endpoint, protocol: "http/json" } },
        providers: [{ id: "main", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-large"] }],
        agent: { tokens: [{ token: OWNER, userId: "ada", role: "owner" }] },
      },
    });
    await using client = connectAgent({ baseURL: service.url("agent"), token: OWNER });
    const query = client.submit({ agentId: "helper", prompt: `SendUserMessage: ${PROMPT}` });
    expect((await query.ended).status).toBe("completed");
    const named = (name: string) => receiver.spans.find((span) => span.name === name);
    await expect.poll(() => named("invoke_agent helper"), { timeout: 60_000 }).toBeDefined();
    expect(named("invoke_agent helper")!.attributes["gen_ai.input.messages"]).toContain(PROMPT);
    expect(named("invoke_agent helper")!.attributes["gen_ai.output.messages"]).toContain("assistant");
    const id = (await query.started)!.runId!;
    expect(JSON.stringify(await client.calls.trace({ params: { id } }))).not.toContain(PROMPT);
    folder.remove();
  });
});

describe("a service with an endpoint of OTLP", () => {
  let receiver: OtlpReceiver;
  let upstream: FakeUpstream;
  let other: Awaited<ReturnType<typeof startOtherService>>;
  let service: PorticoProcess;
  const folder = temporaryFolder();
  const spans = (): readonly ReceivedSpan[] => receiver.spans.filter(({ traceId }) => traceId === TRACE);
  const named = (name: string) => spans().filter((span) => span.name === name);
  const parentOf = (span: ReceivedSpan | undefined) => spans().find(({ spanId }) => spanId === span?.parentSpanId);

  beforeAll(async () => {
    receiver = await startOtlpReceiver();
    upstream = await startFakeUpstream();
    other = await startOtherService();
    const files = {
      "agents/helper/agent.json": { name: "Helper", tools: ["SendUserMessage"] },
      "workflows/all.json": {
        nodes: {
          classify: { type: "model", with: { prompt: PROMPT } },
          call: { type: "http", with: { url: `http://127.0.0.1:${other.port}/`, method: "GET" } },
          reply: { type: "agent", needs: ["classify", "call"], with: { agent: "helper", prompt: PROMPT } },
        },
      },
    };
    for (const [name, value] of Object.entries(files)) {
      mkdirSync(dirname(join(folder.path, name)), { recursive: true });
      writeFileSync(join(folder.path, name), JSON.stringify(value));
    }
    service = await startPortico({
      cwd: folder.path,
      hasOwnProcess: true,
      env: { ...FAST, OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.endpoint}/` },
      config: {
        telemetry: {
          serviceName: "portico-of-the-test",
          resourceAttributes: "deployment.environment.name=a%20test",
          otlp: { protocol: "http/json", headers: `x-api-key=${HEADER}`, compression: "gzip", metricsEveryMs: 200 },
        },
        providers: [{ id: "main", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-large"] }],
        agent: { tokens: [{ token: OWNER, userId: "ada", role: "owner" }] },
        workflow: { http: { allow: ["127.0.0.1"] } },
      },
    });
    const { workflowServiceToken } = JSON.parse(service.read("credentials.json")) as Record<string, string>;
    const started = await fetch(`${service.url("workflow")}/api/workflow/webhook?id=all`, {
      method: "POST",
      headers: { "x-workflow-service-token": workflowServiceToken!, traceparent },
    });
    expect(started.status).toBe(200);
  }, 120_000);
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    for (const each of [receiver, upstream, other]) await each?.[Symbol.asyncDispose]();
    folder.remove();
  });

  it("exports the spans of a request, its run, nodes, turn and model calls as one trace, which the caller began", async () => {
    await expect.poll(() => named("invoke_agent helper").length && named("workflow all").length, { timeout: 60_000 }).toBe(1);
    const [request] = named("POST /api/workflow/webhook");
    const [run] = named("workflow all");
    const [turn] = named("invoke_agent helper");
    expect(request!.parentSpanId).toBe(CALLER);
    expect(parentOf(run)).toBe(request);
    expect(parentOf(named("node model")[0])).toBe(run);
    expect(parentOf(named("node http")[0])).toBe(run);
    expect(parentOf(turn)).toBe(run);
    expect(named("chat echo-large").map((call) => [parentOf(call)?.name, call.attributes["portico.source"]])).toEqual(
      expect.arrayContaining([
        ["node model", "workflow"],
        ["invoke_agent helper", "agent"],
      ]),
    );
    expect(turn!.attributes).toMatchObject({ "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "helper" });
    expect(run!.attributes).toMatchObject({ "portico.workflow.id": "all", "portico.attempt": 1 });
    expect(run!.resource).toMatchObject({
      "service.name": "portico-of-the-test",
      "deployment.environment.name": "a test",
      "service.version": expect.any(String),
    });
  });

  it("gives providers and http nodes the trace context of the work that calls them", async () => {
    const [node] = named("node http");
    expect(other.traceparents).toEqual([`00-${TRACE}-${node!.spanId}-01`]);
    const sent = upstream.requests.map(({ headers }) => headers["traceparent"]);
    expect(sent).toEqual(
      expect.arrayContaining([
        `00-${TRACE}-${named("node model")[0]!.spanId}-01`,
        `00-${TRACE}-${named("invoke_agent helper")[0]!.spanId}-01`,
      ]),
    );
  });

  it("replaces the caller's trace context by its own span in proxied calls, converted or not", async () => {
    const token = await service.token("main");
    upstream.reset();
    for (const path of ["/chat/completions", "/messages"]) {
      const answer = await fetch(`${service.url("proxy")}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": token, traceparent },
        body: JSON.stringify({ model: "echo-large", max_tokens: 9, messages: [{ role: "user", content: PROMPT }] }),
      });
      expect(answer.status).toBe(200);
    }
    await expect.poll(() => [...named("POST /v1/chat/completions"), ...named("POST /v1/messages")].length).toBe(2);
    expect(upstream.requests.map(({ headers }) => headers["traceparent"])).toEqual([
      `00-${TRACE}-${named("POST /v1/chat/completions")[0]!.spanId}-01`,
      `00-${TRACE}-${named("POST /v1/messages")[0]!.spanId}-01`,
    ]);
    const calls = named("chat echo-large").filter(({ attributes }) => attributes["portico.source"] === "proxy");
    expect(calls.map((call) => parentOf(call)?.name)).toEqual(["POST /v1/chat/completions", "POST /v1/messages"]);
  });

  it("exports the spans of a query's turn and of its tools", async () => {
    await using client = connectAgent({ baseURL: service.url("agent"), token: OWNER });
    const { status } = await client.submit({ agentId: "helper", prompt: `SendUserMessage: ${PROMPT}` }).ended;
    expect(status).toBe("completed");
    const turns = () => receiver.spans.filter(({ name, traceId }) => name === "invoke_agent helper" && traceId !== TRACE);
    await expect.poll(() => turns().length).toBe(1);
    const [turn] = turns();
    const inTrace = () => receiver.spans.filter(({ traceId }) => traceId === turn!.traceId);
    await expect.poll(() => inTrace().map(({ name }) => name)).toContain("POST /api/query/start");
    const [request] = inTrace().filter(({ name }) => name === "POST /api/query/start");
    expect(turn!.parentSpanId).toBe(request!.spanId);
    const tools = inTrace().filter(({ name }) => name === "execute_tool SendUserMessage");
    expect(tools.map(({ parentSpanId }) => parentSpanId)).toEqual(tools.map(() => turn!.spanId));
  });

  it("exports the parts of a turn beside its model calls, in the trace that its timeline names", async () => {
    await using client = connectAgent({ baseURL: service.url("agent"), token: OWNER });
    const { runId = "" } = (await client.submit({ agentId: "helper", prompt: "Another turn" }).started)!;
    const newest = async () => (await client.calls.trace({ params: { id: runId } })).turns.at(-1)?.trace;
    await expect.poll(newest).toBeDefined();
    const { trace_id } = (await newest())!;
    const inTrace = () => receiver.spans.filter(({ traceId }) => traceId === trace_id);
    await expect.poll(() => inTrace().map(({ name }) => name)).toContain("delivery");
    const [turn] = inTrace().filter(({ name }) => name === "invoke_agent helper");
    const parts = inTrace().filter(({ parentSpanId }) => parentSpanId === turn!.spanId);
    expect(parts.map(({ name }) => name).toSorted()).toEqual(["admission", "chat echo-large", "delivery", "queue", "start"]);
    const [call] = parts.filter(({ name }) => name === "chat echo-large");
    expect(Number(call!.attributes["gen_ai.response.time_to_first_chunk"])).toBeGreaterThanOrEqual(0);
  });

  it("exports metrics and log lines, and log lines name their trace", async () => {
    await expect
      .poll(() => [...receiver.metrics.keys()])
      .toEqual(
        expect.arrayContaining([
          "http.server.request.duration",
          "gen_ai.client.operation.duration",
          "gen_ai.client.token.usage",
          "portico.work.duration",
          "portico_telemetry_export_up",
          "process.memory.usage",
          "process.cpu.time",
        ]),
      );
    const kinds = receiver.metrics.get("portico.work.duration")!.map((point) => point["portico.work.kind"]);
    expect(new Set(kinds)).toEqual(new Set(["run", "node", "turn", "tool"]));
    const line = () => receiver.logs.find(({ body, attributes }) => body === "request" && attributes["traceId"] === TRACE);
    await expect.poll(line).toMatchObject({
      severity: "info",
      traceId: TRACE,
      attributes: { area: "workflow-service", method: "POST", status: 200, request: expect.stringMatching(/^req_/) },
    });
    const written = checkedLines(service.stderr()).find(({ msg, traceId }) => msg === "request" && traceId === TRACE);
    expect(written).toMatchObject({
      request: line()!.attributes["request"],
      spanId: named("POST /api/workflow/webhook")[0]!.spanId,
    });
  });

  it("sends its headers with every export, and no secret or prompt leaves it in another way", () => {
    expect(receiver.headers.length).toBeGreaterThan(2);
    for (const headers of receiver.headers) expect(headers).toMatchObject({ "x-api-key": HEADER, "content-encoding": "gzip" });
    for (const secret of [PROMPT, OWNER, HEADER, "service_"]) {
      expect(receiver.text).not.toContain(secret);
      expect(service.stderr()).not.toContain(secret);
    }
  });

  it("sends what is left when it stops", async () => {
    expect(await service.stop()).toBe(0);
    expect(receiver.logs.map(({ body }) => body)).toContain("Stopping");
  });
});

it("sends protobuf by default, and only the chosen signals to their own addresses", async () => {
  await using receiver = await startOtlpReceiver();
  const env = { ...FAST, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.endpoint}/v1/traces` };
  await using service = await startPortico({ hasOwnProcess: true, env });
  await fetch(`${service.url("agent")}/api/agents`);
  await expect.poll(() => receiver.binaries.length).toBeGreaterThan(0);
  expect(receiver.text).toContain("GET /api/agents");
  for (const headers of receiver.headers) expect(headers["content-type"]).toBe("application/x-protobuf");
});

it.each(["proxy", "workflow", "agent"])("the preset %s exports, too", async (preset) => {
  await using receiver = await startOtlpReceiver();
  const env = { ...FAST, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" };
  await using service = await startPortico({ args: [preset], env });
  await fetch(`${service.url(preset)}/nothing`);
  await expect.poll(() => receiver.spans.map(({ attributes }) => attributes["portico.area"])).toEqual([preset]);
  await expect.poll(() => receiver.logs.map(({ body }) => body)).toEqual(expect.arrayContaining(["Started", "request"]));
});

it("keeps 2,048 spans and as many log lines that wait for their export, and drops the rest", async () => {
  await using receiver = await startOtlpReceiver();
  const options = { endpoint: receiver.endpoint, protocol: "http/json" } as const;
  const { tracer, emit, close } = openOtlp(options, {}, new ExportHealth(() => undefined));
  // One export of 512 may begin meanwhile.
  for (let item = 0; item < 20_000; item++) {
    tracer.startSpan("span").end();
    emit!({ level: "info", message: "line", fields: {} });
  }
  await expect.poll(() => Math.min(receiver.spans.length, receiver.logs.length)).toBeGreaterThanOrEqual(2048);
  await close();
  expect(Math.max(receiver.spans.length, receiver.logs.length)).toBeLessThanOrEqual(2048 + 512);
});

it("a caller that does not record its trace is not exported, and its log line still has the trace id", async () => {
  await using receiver = await startOtlpReceiver();
  const env = { ...FAST, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" };
  await using service = await startPortico({ hasOwnProcess: true, env });
  const ask = (flags: string) =>
    fetch(`${service.url("agent")}/healthz`, { headers: { traceparent: `00-${TRACE}-${CALLER}-${flags}` } });
  await ask("00");
  await ask("01");
  await expect.poll(() => receiver.spans.length).toBe(1);
  const lines = () => checkedLines(service.stderr()).filter(({ msg }) => msg === "request");
  await expect
    .poll(() => lines().map(({ traceId, spanId }) => [traceId, typeof spanId]))
    .toEqual([
      [TRACE, "undefined"],
      [TRACE, "string"],
    ]);
});

it.each([
  ["is away", undefined],
  ["refuses with 503", 503],
  ["refuses with 401", 401],
  ["does not answer", "never"],
] as const)(
  "a receiver that %s costs the service one warning, and neither requests nor a stop wait for it",
  async (_what, answer) => {
    // Shared with the receiver's process, a busy machine needs seconds for a batch that is welcome.
    const timeoutMs = 1_500;
    const receiver = await startOtlpReceiver();
    receiver.answer = answer ?? 200;
    if (answer === undefined) await receiver[Symbol.asyncDispose]();
    await using service = await startPortico({
      hasOwnProcess: true,
      env: { ...FAST, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint },
      config: { telemetry: { otlp: { timeoutMs, metricsEveryMs: timeoutMs, protocol: "http/json" } } },
    });
    const warnings = () => checkedLines(service.stderr()).filter(({ msg }) => msg === "Telemetry cannot be exported");
    await expect.poll(() => warnings().length).toBe(1);
    // More spans than can wait.
    for (let round = 0; round < 30; round++)
      await Promise.all(
        Array.from({ length: 100 }, async () => expect((await fetch(`${service.url("agent")}/healthz`)).status).toBe(200)),
      );
    expect(warnings()).toHaveLength(1);
    if (answer !== undefined) {
      receiver.answer = 200;
      await expect.poll(() => service.stderr(), { timeout: 120_000 }).toContain("Telemetry is exported again");
      await expect.poll(() => receiver.spans.length).toBeGreaterThan(0);
      expect(receiver.spans.length).toBeLessThan(3_100);
    }
    expect(await service.stop()).toBe(0);
    expect(warnings()).toHaveLength(1);
    if (answer !== undefined) await receiver[Symbol.asyncDispose]();
  },
  180_000,
);

it("an app that embeds the service does not have its own SDK replaced, and no globals set", async () => {
  const { trace, metrics, context } = await import("@opentelemetry/api");
  await using receiver = await startOtlpReceiver();
  const folder = temporaryFolder();
  const options = await readPlatformOptions(
    {
      dataDir: folder.path,
      autoProviders: false,
      log: { level: "silent" },
      agent: { agentsDir: join(folder.path, "agents") },
      workflow: { definitionsDir: join(folder.path, "workflows") },
      telemetry: { otlp: { endpoint: receiver.endpoint, protocol: "http/json" } },
    },
    { env: {} },
  );
  const app = await createApp(local(options));
  await app.surface("agent").fetch(new Request("http://localhost/healthz"));
  expect(trace.getTracer("host").startSpan("of the host").isRecording()).toBe(false);
  expect(trace.getSpan(context.active())).toBeUndefined();
  expect(metrics.getMeterProvider().constructor.name).toMatch(/Noop/);
  await app.close();
  expect(receiver.spans.map(({ name }) => name)).toEqual(["GET /healthz"]);
  folder.remove();
});

const place = await clusterPlace();

it.skipIf(!place)(
  "a trace continues in the process of a cluster that executes the work",
  async () => {
    await using receiver = await startOtlpReceiver();
    await writeDocuments(place!, { "workflows/greet.json": { nodes: { hello: { type: "transform", with: { value: 1 } } } } });
    const env = { ...FAST, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" };
    await using cluster = await startCluster(place!, { count: 1, env: { ...env, PORTICO_CLUSTER_EXECUTES: "false" } });
    await cluster.add({ PORTICO_CLUSTER_EXECUTES: "true", PORTICO_CLUSTER_SURFACES: "[]" });
    const started = await fetch(`${cluster.processes[0]!.url("workflow")}/api/workflow/webhook?id=greet`, {
      method: "POST",
      headers: { "x-workflow-service-token": CLUSTER_WORKFLOW, traceparent },
    });
    expect(started.status).toBe(200);
    const find = (name: string) => receiver.spans.find((span) => span.name === name && span.traceId === TRACE);
    await expect.poll(() => [find("POST /api/workflow/webhook")?.name, find("workflow greet")?.name]).not.toContain(undefined);
    const [request, run] = [find("POST /api/workflow/webhook")!, find("workflow greet")!];
    expect(run.parentSpanId).toBe(request.spanId);
    expect(run.resource["process.pid"]).toBe(cluster.processes[1]!.pid);
    expect(request.resource["process.pid"]).toBe(cluster.processes[0]!.pid);
  },
  120_000,
);
