import { CLUSTER_OWNER, placeOn, type RunningCluster, startCluster } from "../../harness/cluster.ts";
import { writeDocuments } from "../../harness/cluster-documents.ts";
import { ownDatabase } from "../../harness/postgres.ts";
import { type PostgresServer, postgresServer } from "../../harness/postgres-server.ts";
import { type OwnRedis, ownRedis } from "../../harness/redis.ts";
import { everyNode } from "../every-node.ts";
import { type Effects, startEffects } from "./effects.ts";
import { startModel } from "./model.ts";

/** Three processes of a cluster, the servers that they share, and the world that they act on. */
export interface Stage extends AsyncDisposable {
  readonly cluster: RunningCluster;
  readonly postgres: PostgresServer;
  readonly redis: OwnRedis;
  readonly effects: Effects;
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
    const agent = { provider: PROVIDER, model: "echo-large", tools: ["effects/act"] };
    const workflows = everyNode({ effects: effects.url, tool: "effects/act", wait: "1500ms" });
    await writeDocuments(place, {
      "agents/helper/agent.json": { name: "Helper", ...agent },
      "agents/hooked/agent.json": { name: "Hooked", ...agent },
      "workflows/main.json": workflows.main,
      "workflows/child.json": workflows.child,
    });
    const owner = { token: CLUSTER_OWNER, userId: "owner", role: "owner" };
    const provider = {
      id: PROVIDER,
      protocol: "messages",
      baseUrl: model.baseUrl,
      credential: "sk-0123456789",
      models: ["echo-large"],
    };
    const cluster = await startCluster(place, {
      env: {
        PORTICO_CLUSTER_LEASE_MS: `${LEASE_MS}`,
        PORTICO_PROVIDERS: JSON.stringify([provider]),
        PORTICO_MCP_SERVERS: JSON.stringify({ effects: { url: effects.mcpUrl } }),
        PORTICO_WORKFLOW_HTTP_ALLOW: JSON.stringify([new URL(effects.url).host]),
        PORTICO_AGENT_TOKENS: JSON.stringify([owner, ...UPLOADERS.map((user) => ({ ...user, role: "member" }))]),
        PORTICO_LOG_FORMAT: "json",
      },
    });
    stack.use(cluster);
    const kept = stack.move();
    return { cluster, postgres, redis, effects, [Symbol.asyncDispose]: () => kept.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
