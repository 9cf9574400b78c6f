import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { responsesHttp } from "@portico/adapters/models/responses-http";
import { Secret } from "@portico/core";
import { expect, it } from "vitest";
import { startAgentService } from "../../harness/agent-app.ts";
import { sealed } from "../../harness/echo-responses.ts";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { UPSTREAM_KEY } from "../../harness/looped-agents.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const ADAPTERS = { responses: responsesHttp, messages: messagesHttp, "chat-completions": chatHttp };
type Protocol = keyof typeof ADAPTERS;

it.each<readonly [Protocol, Protocol]>([
  ["responses", "messages"],
  ["responses", "chat-completions"],
  ["messages", "responses"],
])("a conversation goes on if its provider changes from %s to %s, without reasoning of the first", async (first, then) => {
  await using upstream = await startFakeUpstream();
  const folder = temporaryFolder();
  let conversationId: string | undefined;
  const ask = async (protocol: Protocol, prompt: string) => {
    const options = { id: "main", type: "test", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    await using service = await startAgentService({
      dataDir: folder.path,
      agents: new Map([["thinker", { name: "Thinker", effort: "high", provider: "main", model: "echo-large" }]]),
      adapters: [ADAPTERS[protocol]({ ...options, credential: new Secret(UPSTREAM_KEY) }), loopAgentEngine({})],
    });
    const client = await service.connect("owner");
    const { clientRequestId } = await client.start(prompt, {}, { agentId: "thinker", ...(conversationId && { conversationId }) });
    const { event, data } = await client.ended(clientRequestId);
    conversationId = data.conversationId;
    expect(event).toBe("query:complete");
    return (await upstream.request(upstream.requests.length)).text();
  };
  try {
    await ask(first, "one");
    const again = await ask(first, "two");
    expect(again).toContain(first === "responses" ? sealed("rs_1") : '"signature"');
    const changed = await ask(then, "three");
    expect(changed).toContain("echo: one");
    for (const state of [sealed("rs_1"), "responses:", '"signature"', "reasoning_details"]) expect(changed).not.toContain(state);
  } finally {
    folder.remove();
  }
});
