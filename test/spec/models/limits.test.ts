import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { systemClock } from "@portico/adapters/clock/system";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { modelNode } from "@portico/adapters/workflow-nodes/model";
import { type Adapter, type ports, Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { rememberedContext } from "../../conformance/agent-engines.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";
import { openNode } from "../../harness/run-node.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { after, events, json } from "../../harness/upstream-answers.ts";

const KEYS = ["sk-first-key-of-two", "sk-second-key-of-two"];

/** Asks the model once. */
interface Caller extends AsyncDisposable {
  ask(): Promise<unknown>;
}

/** What calls a model beside the proxy. */
const CALLERS: Readonly<Record<string, (adapters: readonly Adapter[]) => Promise<Caller>>> = {
  "an agent": async (adapters) => {
    const { port, close } = await openAdapter(loopAgentEngine({}), adapters);
    const turn: ports.AgentTurn = {
      ...{ agentId: "agent", agent: { name: "Agent", engine: "loop", tools: [], skills: [], core: false } },
      ...{ provider: "main", model: "echo-large", history: [], input: [{ type: "text", text: "hello" }] },
      ...{ tools: [], maxTurns: 5, caller: {} },
    };
    return { ask: () => port.run(turn, rememberedContext(new Map()).context), [Symbol.asyncDispose]: close };
  },
  "a model node of a workflow": async (adapters) => {
    const node = await openNode(modelNode(), adapters);
    return { ask: () => node.run({ prompt: "hello" }), [Symbol.asyncDispose]: () => node[Symbol.asyncDispose]() };
  },
};

describe.each(Object.entries(CALLERS))("the limits of a provider hold for %s", (_name, open) => {
  const started = async (upstream: FakeUpstream, limits: Partial<Parameters<typeof messagesHttp>[0]>) => {
    const telemetry = createMemoryTelemetry();
    const at = { type: "vendor", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    const provider = messagesHttp({ ...at, id: "main", credential: new Secret(KEYS[0]!), ...limits });
    const caller = await open([provider, systemClock(), memoryTelemetry({ telemetry })]);
    return { caller, telemetry };
  };

  it("keys: a limited key rests, the next one is used, and the numbers tell it", async () => {
    await using upstream = await startFakeUpstream();
    const { caller, telemetry } = await started(upstream, { keys: KEYS.map((key) => new Secret(key)) });
    await using _closed = caller;
    upstream.answerNext(json(429, refusal));
    await caller.ask();
    await caller.ask();
    expect(upstream.requests.map(({ headers }) => headers["x-api-key"])).toEqual([KEYS[0], KEYS[1], KEYS[1]]);
    expect(await told(telemetry, "keys")).toEqual({ ready: 1, limited: 1, refused: 0 });
    upstream.answerNext(json(401, refusal));
    await caller.ask().catch(() => {});
    expect(await told(telemetry, "keys")).toEqual({ ready: 0, limited: 1, refused: 1 });
    expect(JSON.stringify(await telemetry.readGauges())).not.toContain("sk-");
  });

  it("retry: a failed call is sent again, counted as one call, and the numbers tell it", async () => {
    await using upstream = await startFakeUpstream();
    const { caller, telemetry } = await started(upstream, { retry: { attempts: 3, waitMs: 1, maxWaitMs: 5 } });
    await using _closed = caller;
    upstream.answerNext(json(503, refusal), json(503, refusal));
    await caller.ask();
    expect(upstream.requests).toHaveLength(3);
    expect(telemetry.modelCalls).toMatchObject([{ error: undefined }]);
    expect(await telemetry.readGauges()).toMatchObject({
      portico_provider_retries: [{ labels: { provider: "main" }, value: 2 }],
    });
  });

  it("concurrency: further calls wait, and the numbers tell it", async () => {
    await using upstream = await startFakeUpstream();
    const gate = createGate();
    upstream.answerAll(after(gate.opened, events(messagesEvents("one two"))));
    const { caller, telemetry } = await started(upstream, { concurrency: { limit: 1, queue: 2, waitMs: 60_000 } });
    await using _closed = caller;
    const asked = [caller.ask(), caller.ask(), caller.ask()];
    await expect.poll(() => told(telemetry, "calls")).toEqual({ running: 1, waiting: 2 });
    expect(upstream.requests).toHaveLength(1);
    gate.open();
    await Promise.all(asked);
    expect(upstream.requests).toHaveLength(3);
    await expect.poll(() => told(telemetry, "calls")).toEqual({ running: 0, waiting: 0 });
  });
});

it("the numbers of all providers are one metric, until their app closes", async () => {
  await using upstream = await startFakeUpstream();
  const telemetry = createMemoryTelemetry();
  const of = (id: string) =>
    messagesHttp({ ...{ id, type: "vendor", baseUrl: upstream.baseUrl, models: [] }, keys: KEYS.map((key) => new Secret(key)) });
  const { close } = await openAdapter(loopAgentEngine({}), [of("one"), of("two"), systemClock(), memoryTelemetry({ telemetry })]);
  const { portico_provider_keys: keys } = await telemetry.readGauges();
  expect(keys?.map(({ labels, value }) => [labels["provider"], labels["state"], value])).toEqual(
    ["one", "two"].flatMap((id) => [
      [id, "ready", 2],
      [id, "refused", 0],
      [id, "limited", 0],
    ]),
  );
  await close();
  expect(await telemetry.readGauges()).toEqual({});
});

const refusal = { type: "error", error: { type: "api_error", message: "refused" } };

async function told(telemetry: MemoryTelemetry, what: "keys" | "calls") {
  const { [`portico_provider_${what}`]: values = [] } = await telemetry.readGauges();
  return Object.fromEntries(values.map(({ labels, value }) => [labels["state"], value]));
}
