import { CLUSTER_OWNER, placeOn, type RunningCluster, startCluster } from "../../harness/cluster.ts";
import { writeDocuments } from "../../harness/cluster-documents.ts";
import { ownDatabase } from "../../harness/postgres.ts";
import { type PostgresServer, postgresServer } from "../../harness/postgres-server.ts";
import { type OwnRedis, ownRedis } from "../../harness/redis.ts";
import { everyNode } from "../every-node.ts";
import { type Effects, startEffects } from "./effects.ts";
import { startModel } from "./model.ts";

/** The environment of a load: the services' addresses, and the external systems that agents and workflows use. */
export interface Scene {
  readonly cluster: Pick<RunningCluster, "url">;
  readonly effects: Effects;
}

/** Three processes of a cluster, the servers that they share, and the external systems. */
export interface Stage extends Scene, AsyncDisposable {
  readonly cluster: RunningCluster;
  readonly postgres: PostgresServer;
  readonly redis: OwnRedis;
}

/** Time after which a frozen process loses its work. Short, so that a test can freeze often. */
export const LEASE_MS = 6000;
/** Tokens of users who upload: each user may have 256 attachments. */
export const UPLOADERS = ["mia", "ben", "eva", "tom"].map((userId) => ({ userId, token: `token-of-${userId}-0123456789` }));
export const PROVIDER = "model";

export async function startStage(): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  try {
    const effects = stack.use(await startEffects());
    const model = stack.use(await startModel(effects));
    const [postgres, redis] = await Promise.all([postgresServer(), ownRedis()]);
    stack.use(postgres);
    stack.use(redis);
    const place = placeOn(ownDatabase(postgres.url), { url: redis.url, prefix: "chaos" });
    await writeDocuments(place, documentsOf(effects));
    const cluster = await startCluster(place, {
      env: { PORTICO_CLUSTER_LEASE_MS: `${LEASE_MS}`, ...settingsOf(effects, model.baseUrl) },
    });
    stack.use(cluster);
    const kept = stack.move();
    return { cluster, postgres, redis, effects, [Symbol.asyncDispose]: () => kept.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** The agents and workflows that loads use, by file. */
export function documentsOf({ url }: Effects): Readonly<Record<string, object>> {
  const agent = { provider: PROVIDER, model: "echo-large", tools: ["effects/act"] };
  const workflows = everyNode({ effects: url, tool: "effects/act", wait: "1500ms" });
  return {
    "agents/helper/agent.json": { name: "Helper", ...agent },
    "agents/hooked/agent.json": { name: "Hooked", ...agent },
    "workflows/main.json": workflows.main,
    "workflows/child.json": workflows.child,
  };
}

/** The settings of a service under load, as environment variables. */
export function settingsOf({ url, mcpUrl }: Effects, modelUrl: string): Readonly<Record<string, string>> {
  const owner = { token: CLUSTER_OWNER, userId: "owner", role: "owner" };
  const model = { id: PROVIDER, protocol: "messages", baseUrl: modelUrl, credential: "sk-0123456789", models: ["echo-large"] };
  return {
    PORTICO_PROVIDERS: JSON.stringify([model]),
    PORTICO_MCP_SERVERS: JSON.stringify({ effects: { url: mcpUrl } }),
    PORTICO_WORKFLOW_HTTP_ALLOW: JSON.stringify([new URL(url).host]),
    PORTICO_AGENT_TOKENS: JSON.stringify([owner, ...UPLOADERS.map((user) => ({ ...user, role: "member" }))]),
    PORTICO_LOG_FORMAT: "json",
  };
}
