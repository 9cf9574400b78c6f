import { connectAgent } from "@portico/client";
import { functionTools } from "@portico/adapters/tools/functions";
import { expect, it } from "vitest";
import { TOKENS } from "../../harness/agent-app.ts";
import { answerEvents } from "../../harness/answer-events.ts";
import { createGate } from "../../harness/gate.ts";
import { startLoopedAgents, toolOf } from "../../harness/looped-agents.ts";
import { events } from "../../harness/upstream-answers.ts";

it("a message to a running turn is told once, also if the answer of the call was lost, and says at the end that it was told", async () => {
  const [begun, done] = [Promise.withResolvers<void>(), createGate()];
  const run = () => (begun.resolve(), done.opened.then(() => "worked"));
  await using looped = await startLoopedAgents(
    { worker: { provider: "messages", model: "echo-large", tools: ["work"] } },
    { adapters: [functionTools({ tools: [{ ...toolOf("work"), run }] })] },
  );
  looped.upstream.answerNext(
    events(answerEvents("messages", { calls: [{ id: "call_1", name: "work", input: {} }] })),
    events(answerEvents("messages", { text: "In blue." })),
  );
  let lost = 0;
  await using client = connectAgent({
    baseURL: looped.service.url,
    token: TOKENS.owner,
    fetch: async (request) => {
      const answer = await fetch(request);
      if (!request.url.endsWith("/steer") || lost++ > 0) return answer;
      await answer.body?.cancel();
      throw new TypeError("fetch failed");
    },
  });
  const query = client.submit({ agentId: "worker", prompt: "Begin" });
  await begun.promise;
  const { messageId, status } = await client.steer(query, { text: "Blue" });
  expect([status, lost]).toEqual(["pending", 2]);
  done.open();
  const told: unknown[] = [];
  for await (const { type, content } of query) if (type === "steering") told.push(content);
  expect(told).toEqual([{ messageId, text: "Blue" }]);
  expect(await client.steer(query, { text: "Blue", messageId })).toEqual({ messageId, status: "taken" });
  await expect(client.steer(query, { text: "Red" })).rejects.toMatchObject({ code: "turn_ended" });
});
