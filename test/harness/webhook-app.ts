import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aesGcmSealing, type AesGcmSealingOptions } from "@portico/adapters/sealing/aes-gcm";
import { agentWebhook } from "@portico/plugins/agent-webhook";
import { type AgentService, type AgentServiceOptions, type Answer, type Holder, startAgentService } from "./agent-app.ts";
import { temporaryFolder } from "./portico-process.ts";

export interface WebhookServiceOptions extends Omit<AgentServiceOptions, "agents" | "agentsDir" | "plugins"> {
  /**
   * The contents of `agent.json` by id: an object, or the exact text; null for a folder without it. Default: `helper`, played by scripts.
   */
  readonly files?: Readonly<Record<string, object | string | null>>;
  readonly webhook?: Parameters<typeof agentWebhook>[0];
  /** The keys of sealing. Default: a key among the secrets. */
  readonly sealing?: AesGcmSealingOptions;
}

/** An agent service with webhooks, whose agents are folders. */
export interface WebhookService extends AgentService {
  readonly agentFile: (agentId?: string) => string;
  /** A management call of this holder. */
  manage(method: string, path: string, body?: unknown, holder?: Holder): Promise<Answer>;
  /** Save an event of `helper`; answers the secret where this save made it. */
  save(
    event: string,
    promptTemplate: string,
    more?: { readonly toolIds?: readonly string[]; readonly maxTurns?: number },
  ): Promise<string>;
  /** A trigger with this bearer token. A string is sent unchanged. */
  trigger(bearer: string | undefined, body: unknown, agentId?: string): Promise<Answer>;
  readText(agentId?: string): string;
  writeText(text: string, agentId?: string): void;
}

export const scriptedAgent = { name: "Helper", engine: "scripted" };

export async function startWebhookService(options: WebhookServiceOptions = {}): Promise<WebhookService> {
  const { files = { helper: scriptedAgent }, webhook, sealing = {}, adapters = [], ...rest } = options;
  const folder = options.dataDir === undefined ? temporaryFolder() : undefined;
  const dataDir = options.dataDir ?? folder!.path;
  const agentsDir = join(dataDir, "agents");
  for (const [id, content] of Object.entries(files)) {
    mkdirSync(join(agentsDir, id), { recursive: true });
    const text = typeof content === "string" ? content : JSON.stringify(content, undefined, 2);
    if (content !== null) writeFileSync(join(agentsDir, id, "agent.json"), text);
  }
  const service = await startAgentService({
    ...{ ...rest, dataDir, agentsDir },
    adapters: [aesGcmSealing(sealing), ...adapters],
    plugins: [agentWebhook({ ...webhook })],
  });
  const close = async () => {
    await service.close();
    folder?.remove();
  };
  const agentFile = (agentId = "helper") => join(agentsDir, agentId, "agent.json");
  const manage: WebhookService["manage"] = (method, path, body, holder = "owner") =>
    service.call(holder, method, `/api/agents/${path}`, body);
  let secret = "";
  return {
    ...service,
    close,
    [Symbol.asyncDispose]: close,
    agentFile,
    manage,
    async save(event, promptTemplate, { toolIds = [], maxTurns } = {}) {
      const body = { promptTemplate, toolIds, ...(maxTurns !== undefined && { maxTurns }) };
      const saved = await manage("PUT", `helper/webhooks/events/${event}`, body);
      if (saved.status !== 200) throw new Error(`An event was not saved: ${saved.status} ${JSON.stringify(saved.body)}`);
      return (secret = saved.body.secret ?? secret);
    },
    trigger: (bearer, body, agentId = "helper") =>
      service.call(undefined, "POST", `/api/webhook/${agentId}`, body, {
        "content-type": "application/json",
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      }),
    readText: (agentId) => readFileSync(agentFile(agentId), "utf8"),
    writeText(text, agentId) {
      // As editors do it, so that no reader sees half a file.
      writeFileSync(`${agentFile(agentId)}~`, text);
      renameSync(`${agentFile(agentId)}~`, agentFile(agentId));
    },
  };
}
