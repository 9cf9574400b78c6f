import { chatHttp } from "@portico/adapters/models/chat-http";
import { afterEach, describe, expect, it } from "vitest";
import { type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { answerEvents } from "../../harness/answer-events.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { promptOf } from "../../harness/scripted-agent.ts";
import { events } from "../../harness/upstream-answers.ts";

let service: AgentService;
afterEach(() => service.close());

describe("the settings of an agent.json", () => {
  it("limit the model calls of a turn, unless the query says its own limit; else a turn has 20", async () => {
    const agents = new Map([
      ["few", { name: "Few", engine: "scripted", maxTurns: 3 }],
      ["plain", { name: "Plain", engine: "scripted" }],
    ]);
    service = await startAgentService({ agents });
    const limits: Record<string, number> = {};
    service.engine.otherwise(async (turn) => void (limits[promptOf(turn)] = turn.maxTurns));
    const client = await service.connect();
    for (const [prompt, options] of [
      ["agent's", { agentId: "few" }],
      ["query's", { agentId: "few", maxTurns: 7 }],
      ["default", { agentId: "plain" }],
    ] as const) {
      const { clientRequestId } = await client.start(prompt, {}, options);
      await client.ended(clientRequestId);
    }
    expect(limits).toEqual({ "agent's": 3, "query's": 7, default: 20 });
  });

  it("with a meaning unknown to the service are listed with the agent, and count for nothing", async () => {
    const agents = new Map([["typo", { name: "Typo", engine: "scripted", temprature: 0.1, ui: { color: "red" } }]]);
    service = await startAgentService({ agents });
    const { body } = await service.call("owner", "GET", "/api/agents");
    expect(body.agents[0]).toMatchObject({ id: "typo", status: "idle", unknownKeys: ["temprature"] });
  });

  it("that name an engine, a provider or a model that the instance does not have are told in the list of agents", async () => {
    const main = chatHttp({ id: "main", type: "test", baseUrl: "http://127.0.0.1:9/v1", models: ["echo-large"] });
    const agents = new Map<string, object>([
      ["a", { name: "Engine", engine: "gone" }],
      ["b", { name: "Provider", provider: "gone" }],
      ["c", { name: "Model", model: "gone" }],
      ["d", { name: "Unlisted model of its provider", provider: "main", model: "gone" }],
      ["e", { name: "Listed", model: "echo-large" }],
      ["f", { name: 1 }],
    ]);
    service = await startAgentService({ agents, adapters: [main] });
    const missing = async () =>
      (await service.call("owner", "GET", "/api/agents")).body.agents.map((agent: { missing?: string }) => agent.missing);
    expect(await missing()).toEqual(["engine", "provider", "model", undefined, undefined, undefined]);
    await service.close();

    // A provider whose list cannot be read may have the model.
    const silent = chatHttp({ id: "silent", type: "test", baseUrl: "http://127.0.0.1:9/v1", models: "discover" });
    service = await startAgentService({ agents, adapters: [main, silent] });
    expect((await missing())[2]).toBeUndefined();
  });

  it("fail a turn whose answer does not fit outputSchema, also after its correction, with output_invalid", async () => {
    await using upstream = await startFakeUpstream();
    upstream.answerAll(events(answerEvents("chat-completions", { text: "It is warm" })));
    const outputSchema = { type: "object", required: ["degrees"] };
    const agents = new Map([["caster", { name: "Caster", provider: "main", outputSchema }]]);
    const provider = chatHttp({ id: "main", type: "test", baseUrl: upstream.baseUrl, models: ["echo-large"] });
    service = await startAgentService({ agents, adapters: [provider] });
    const client = await service.connect();
    const { clientRequestId } = await client.start("How warm is it?", {}, { agentId: "caster" });
    const { event, data } = await client.ended(clientRequestId);
    expect([event, data.code]).toEqual(["query:error", "output_invalid"]);
    expect(data.error).toContain("the output is not JSON");
    expect(upstream.requests.length).toBe(2);
  });
});
