import { functionTools } from "@portico/adapters/tools/functions";
import { expect, it } from "vitest";
import { startAgentService } from "../../harness/agent-app.ts";
import { answerEvents } from "../../harness/answer-events.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { toolOf, upstreamProviders } from "../../harness/looped-agents.ts";
import { events } from "../../harness/upstream-answers.ts";

it.each<[string, unknown, unknown, unknown]>([
  ["an object that is encoded twice is the object", '{"path":"a"}', { path: "a" }, { path: "a" }],
  ["a list is refused, and later requests have an object", ["a"], undefined, {}],
  ["a text is refused, and later requests have an object", "a", undefined, {}],
])("arguments of a model's call that are no object: %s", async (_what, input, called, sent) => {
  const upstream = await startFakeUpstream();
  await using _upstream = { [Symbol.asyncDispose]: () => upstream.close() };
  let args: unknown;
  const look = { ...toolOf("look"), inputSchema: { type: "object" }, run: async (given: unknown) => ((args = given), "done") };
  await using service = await startAgentService({
    agents: new Map([["looper", { name: "Looper", provider: "messages", model: "echo-large", tools: ["look"] }]]),
    adapters: [...upstreamProviders(upstream.baseUrl), functionTools({ tools: [look] })],
  });
  upstream.answerNext(events(answerEvents("messages", { calls: [{ id: "toolu_1", name: "look", input }] })));
  const client = await service.connect("member");
  const { clientRequestId } = await client.start("look", {}, { agentId: "looper" });
  await client.ended(clientRequestId);
  expect(args).toEqual(called);
  const second = JSON.parse((await (await upstream.request(2)).bytes()).toString());
  expect(second.messages[1].content).toMatchObject([{ type: "tool_use", input: sent }]);
});
