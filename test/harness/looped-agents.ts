import { chatHttp } from "@portico/adapters/models/chat-http";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { type Adapter, type ports, Secret } from "@portico/core";
import { type AgentClient, type AgentService, type AgentServiceOptions, startAgentService } from "./agent-app.ts";
import { type FakeUpstream, startFakeUpstream } from "./fake-upstream.ts";

/** The key of the providers at the fake upstream. */
export const UPSTREAM_KEY = "sk-upstream-key-0123456789";

/** An agent service whose agents are played by the built-in loop, with a fake provider of each protocol. */
export interface LoopedAgents extends AsyncDisposable {
  readonly service: AgentService;
  readonly upstream: FakeUpstream;
  /** A client of the owner. */
  readonly client: AgentClient;
  /** Ask one agent something; resolves when the turn has ended. */
  ask(agentId: string, prompt: string, options?: Record<string, unknown>): Promise<LoopedTurn>;
  /** The messages that the model was sent with a request, and all else of it. */
  sent(number: number): Promise<any>;
}

export interface LoopedTurn {
  readonly event: string;
  readonly data: any;
  /** The newest receipt of its run. */
  readonly receipt: any;
  /** Its messages in the conversation, the user's first. */
  readonly messages: readonly any[];
}

/** One provider of each protocol at this address, each named as its protocol. */
export function upstreamProviders(baseUrl: string): readonly Adapter[] {
  const options = { type: "test", baseUrl, credential: new Secret(UPSTREAM_KEY), models: ["echo-large"] };
  return [messagesHttp({ ...options, id: "messages" }), chatHttp({ ...options, id: "chat-completions" })];
}

/** `agents`: the contents of `agent.json` beside the name, by id; `provider` is the name of a protocol. */
export async function startLoopedAgents(
  agents: Readonly<Record<string, object>>,
  options: Omit<AgentServiceOptions, "agents"> = {},
): Promise<LoopedAgents> {
  const upstream = await startFakeUpstream();
  const service = await startAgentService({
    ...options,
    agents: new Map(Object.entries(agents).map(([id, definition]) => [id, { name: id, ...definition }])),
    adapters: [...upstreamProviders(upstream.baseUrl), ...(options.adapters ?? [])],
  });
  const client = await service.connect("owner");
  return {
    service,
    upstream,
    client,
    async ask(agentId, prompt, more = {}) {
      const { clientRequestId } = await client.start(prompt, {}, { agentId, ...more });
      const { event, data } = await client.ended(clientRequestId);
      return { event, data, ...(await keptOf(service, data)) };
    },
    sent: async (number) => JSON.parse((await (await upstream.request(number)).bytes()).toString()),
    async [Symbol.asyncDispose]() {
      await service.close();
      await upstream.close();
    },
  };
}

/** The stored data of a turn. */
export async function keptOf(
  service: Pick<AgentService, "call">,
  { runId, conversationId, clientRequestId }: { runId: string; conversationId: string; clientRequestId: string },
): Promise<Pick<LoopedTurn, "receipt" | "messages">> {
  const [receipts, page] = await Promise.all([
    service.call("owner", "GET", `/api/runs/${runId}/receipt`),
    service.call("owner", "GET", `/api/conversations/${conversationId}/messages?limit=200`),
  ]);
  const messages = page.body.messages.filter((message: any) => message.clientRequestId === clientRequestId);
  return { receipt: receipts.body.receipts.at(-1), messages };
}

/** A tool of an application, for agents that the loop plays. */
export const toolOf = (name: string, more: Partial<ports.ToolDefinition> = {}) => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: "object", properties: { of: { type: "string" } } },
  riskLevel: "low" as const,
  requiresConfirmation: false,
  ...more,
});
