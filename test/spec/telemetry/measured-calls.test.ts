import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { systemClock } from "@portico/adapters/clock/system";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import type { ports } from "@portico/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { rememberedContext } from "../../conformance/agent-engines.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";
import { openNode } from "../../harness/run-node.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { CUT, events, json } from "../../harness/upstream-answers.ts";

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.close());

const provider = () => messagesHttp({ id: "main", type: "vendor", baseUrl: upstream.baseUrl, models: ["echo-large"] });
const CALL = { provider: "main", providerType: "vendor", model: "echo-large", durationMs: expect.any(Number) as number };
const script = messagesEvents("one two");
const begun = script.slice(0, script.findIndex((event) => event.includes("one")) + 1);
const refusal = json(400, { type: "error", error: { type: "invalid_request_error", message: "no hidden-word" } });

const TURN: ports.AgentTurn = {
  agentId: "agent",
  agent: { name: "Agent", engine: "loop", tools: [], skills: [], core: false },
  provider: "main",
  model: "echo-large",
  history: [],
  input: [{ type: "text", text: "hello" }],
  tools: [],
  maxTurns: 5,
  caller: {},
};

it.each<[string, Answer, object]>([
  ["ends well, with its tokens", events(script), { inputTokens: 7, outputTokens: 11, error: undefined }],
  ["is refused", refusal, { error: "400" }],
  ["breaks", events([...begun, CUT]), { error: "upstream_broken" }],
  ["ends before it is finished", events(begun), { error: "upstream_broken" }],
  [
    "tells an error",
    events([...begun, 'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"x"}}\n\n']),
    { error: "upstream_error" },
  ],
])("a model call of an agent's turn that %s is measured once", async (_name, answer, expected) => {
  upstream.reset();
  upstream.answerAll(answer);
  const telemetry = createMemoryTelemetry();
  const { port, close } = await openAdapter(loopAgentEngine({}), [provider(), systemClock(), memoryTelemetry({ telemetry })]);
  await port.run(TURN, rememberedContext(new Map()).context).catch(() => undefined);
  await close();
  expect(telemetry.modelCalls).toHaveLength(upstream.requests.length);
  for (const call of telemetry.modelCalls) expect(call).toMatchObject({ ...CALL, source: "agent", ...expected });
  expect(JSON.stringify(telemetry.modelCalls)).not.toContain("hidden-word");
});

it("a model call tells what was left out of its request, because the model does not take it or its provider refused it", async () => {
  upstream.reset();
  upstream.answerNext(
    json(400, { type: "error", error: { type: "invalid_request_error", message: "temperature: is not supported" } }),
  );
  const telemetry = createMemoryTelemetry();
  const models = [{ id: "echo-large", images: false as const }];
  const blind = messagesHttp({ id: "main", type: "vendor", baseUrl: upstream.baseUrl, models });
  const { port, close } = await openAdapter(loopAgentEngine({}), [blind, systemClock(), memoryTelemetry({ telemetry })]);
  const image = { type: "media" as const, mediaType: "image/png", data: "iVBORw0KGgo=" };
  const agent = { ...TURN.agent, temperature: 0.5 };
  await port.run({ ...TURN, agent, input: [...TURN.input, image] }, rememberedContext(new Map()).context);
  await close();
  expect(telemetry.modelCalls).toMatchObject([{ ...CALL, dropped: ["messages.content.image", "temperature"], error: undefined }]);
});

it("a model call of an agent's turn that is aborted is measured as such", async () => {
  upstream.reset();
  upstream.answerAll(events([...begun, new Promise(() => {})]));
  const telemetry = createMemoryTelemetry();
  const { port, close } = await openAdapter(loopAgentEngine({}), [provider(), systemClock(), memoryTelemetry({ telemetry })]);
  const abort = new AbortController();
  const { context } = rememberedContext(new Map());
  const aborted: ports.TurnContext = {
    ...context,
    signal: abort.signal,
    step: (_name, run) => run(abort.signal),
    say: () => abort.abort(new Error("stop")),
  };
  await expect(port.run(TURN, aborted)).rejects.toThrow("stop");
  await expect.poll(() => telemetry.modelCalls).toMatchObject([{ ...CALL, source: "agent", error: "aborted" }]);
  await close();
});

it.each<[string, Answer | undefined, object]>([
  [
    "ends well, with its tokens",
    undefined,
    { inputTokens: expect.any(Number), outputTokens: expect.any(Number), error: undefined },
  ],
  ["is refused", refusal, { error: "400" }],
])("a model call of a workflow node that %s is measured once", async (_name, answer, expected) => {
  upstream.reset();
  if (answer) upstream.answerAll(answer);
  const telemetry = createMemoryTelemetry();
  await using node = await openNode(modelNode(), [provider(), systemClock(), memoryTelemetry({ telemetry })]);
  await node.run({ prompt: "hello" }).catch(() => undefined);
  expect(telemetry.modelCalls).toMatchObject([{ ...CALL, source: "workflow", ...expected }]);
});
