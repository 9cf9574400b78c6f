import { chatHttp } from "@portico/adapters/models/chat-http";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { functionTools } from "@portico/adapters/tools/functions";
import { expect, it } from "vitest";
import { startAgentService } from "../../harness/agent-app.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { chatEvents, messagesEvents } from "../../harness/stream-scripts.ts";
import { events, never } from "../../harness/upstream-answers.ts";

const script = { messages: messagesEvents("one two three"), "chat-completions": chatEvents("one two three") };

it.each([
  ["messages", "before its answer"],
  ["messages", "in the middle of its stream"],
  ["chat-completions", "before its answer"],
  ["chat-completions", "in the middle of its stream"],
] as const)("query:abort reaches the upstream call (%s), %s (open points 7)", async (protocol, when) => {
  await using upstream = await startFakeUpstream();
  upstream.answerAll(when === "before its answer" ? never() : events([...script[protocol].slice(0, 4), new Promise(() => {})]));
  const provider = { id: "main", type: "test", baseUrl: upstream.baseUrl, models: ["echo-large"] };
  await using service = await startAgentService({
    agents: new Map([["looper", { name: "Looper", provider: "main", model: "echo-large" }]]),
    adapters: [protocol === "messages" ? messagesHttp(provider) : chatHttp(provider)],
  });
  const client = await service.connect("owner");
  const { clientRequestId } = await client.start("Hello", {}, { agentId: "looper" });
  const { sessionId } = await client.event("query:started", clientRequestId);
  const call = await upstream.request();
  if (when === "in the middle of its stream") await client.event("query:message", clientRequestId);
  client.socket.emit("query:abort", { sessionId });
  expect(await call.outcome).toBe("aborted");
  expect((await client.ended(clientRequestId)).data).toMatchObject({ terminal: { status: "interrupted", reason: "user_stop" } });
});

it("query:abort stops the tools of that turn, and does not wait for a tool that ignores its signal", async () => {
  const [running, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const tools = functionTools({
    tools: [
      {
        name: "deaf",
        description: "Never ends",
        inputSchema: { type: "object" },
        riskLevel: "low",
        requiresConfirmation: false,
        run: (_args, _caller, signal) => {
          running.resolve();
          signal.addEventListener("abort", () => stopped.resolve(), { once: true });
          return new Promise(() => {});
        },
      },
    ],
  });
  await using service = await startAgentService({
    agents: new Map([["looper", { name: "Looper", tools: ["deaf"] }]]),
    adapters: [tools],
  });
  const client = await service.connect("owner");
  const { clientRequestId } = await client.start("Use deaf", {}, { agentId: "looper" });
  const { sessionId, runId } = await client.event("query:started", clientRequestId);
  await running.promise;
  client.socket.emit("query:abort", { sessionId });
  await stopped.promise;
  expect((await client.ended(clientRequestId)).data.terminal.status).toBe("interrupted");
  const { body } = await service.call("owner", "GET", `/api/runs/${runId}/receipt`);
  expect(body.receipts[0].tool_calls).toMatchObject([{ name: "deaf", is_error: true }]);
});
