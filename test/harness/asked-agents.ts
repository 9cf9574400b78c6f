import { modelProxy } from "@portico/plugins/model-proxy";
import { agentModels, type AgentModelsOptions } from "@portico/plugins/conversations-runs/agent-models";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { ports } from "@portico/core";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type AgentService, type AgentServiceOptions, startAgentService } from "./agent-app.ts";
import { httpCall, type Reply } from "./http-call.ts";
import { serveMembers } from "./members.ts";

/** A service whose agents are models of its proxy. */
export interface AskedAgents extends AsyncDisposable {
  readonly service: AgentService;
  /** The origin of the proxy. */
  readonly url: string;
  /** A safe token bound to the provider `agents`. */
  readonly token: string;
  readonly messages: Anthropic;
  readonly chat: OpenAI;
  /** A JSON POST to the proxy with the token. */
  post(path: string, body: unknown): Promise<Reply>;
  close(): Promise<void>;
}

export interface AskedAgentsOptions extends AgentServiceOptions {
  /** Default: the user `member`. */
  readonly models?: Partial<AgentModelsOptions>;
}

export async function startAskedAgents({ models, ...options }: AskedAgentsOptions = {}): Promise<AskedAgents> {
  const service = await startAgentService({
    ...options,
    adapters: [agentModels({ userId: "member", ...models }), ...(options.adapters ?? [])],
    plugins: [modelProxy({ ownTokens: async () => [] }), ...(options.plugins ?? [])],
  });
  const served = await serveMembers(service, "proxy");
  const { app } = service;
  const tokens = createSafeTokens({
    records: app.port(ports.records),
    secrets: app.port(ports.secrets),
    clock: app.port(ports.clock),
    ids: app.port(ports.ids),
  });
  const issued = await tokens.issue({ providerId: "agents" });
  const token = issued.token.reveal();
  const close = async () => {
    served.stop();
    await service.close();
    await served.end();
  };
  return {
    service,
    url: served.url,
    token,
    messages: new Anthropic({ apiKey: token, baseURL: served.url, maxRetries: 0 }),
    chat: new OpenAI({ apiKey: token, baseURL: `${served.url}/v1`, maxRetries: 0 }),
    post: (path, body) =>
      httpCall(served.url, {
        path,
        headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
