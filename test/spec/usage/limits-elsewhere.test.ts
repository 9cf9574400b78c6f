// Several processes of one instance: turns of all of them count toward the turns at once.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startBody } from "../../harness/agent-app.ts";
import { type AgentCluster, type AgentProcess, clusterServers, createAgentCluster } from "../../harness/agent-cluster.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

const servers = await clusterServers();
if (!servers) console.warn("Tests of clusters are skipped: no PostgreSQL or no Redis server answers");
afterAll(() => servers?.database.drop());

/** More than the turns that a process accepts in ten seconds, which it counts itself. */
const AT_ONCE = 24;
/** Messages between processes take a moment. */
const SOON = { timeout: 30_000, interval: 1000 };

describe.skipIf(!servers)("turns at once in several processes", () => {
  let cluster: AgentCluster;
  let [a, b, c]: AgentProcess[] = [];
  const agents = new Map([
    ["helper", { name: "Helper", engine: "scripted" }],
    ["second", { name: "Second", engine: "scripted" }],
  ]);
  const start = (executes: boolean) =>
    cluster.start({ executes, agents, runtime: { limits: { user: { turnsAtOnce: AT_ONCE } } } });
  beforeAll(async () => {
    cluster = createAgentCluster(servers!);
    [a, b, c] = [await start(false), await start(true), await start(false)];
    b!.engine.on("wait", (_turn, context) => untilStopped(context));
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it("count in each of them, and no longer when they have ended", async () => {
    const client = await a!.connect();
    const submit = (to: AgentProcess, prompt: string) => to.call("owner", "POST", "/api/query/start", startBody(client, prompt));
    const begin = async (): Promise<Record<string, string>> =>
      client.event("query:started", (await client.start("wait")).clientRequestId);
    const started = await Promise.all(Array.from({ length: AT_ONCE }, begin));
    for (const to of [a!, c!]) {
      await expect
        .poll(async () => (await submit(to, "at once")).body, SOON)
        .toMatchObject({ code: "limit_reached", limit: "turnsAtOnce", scope: "user" });
    }
    const late = await start(false);
    await expect.poll(async () => (await submit(late, "at once")).status, SOON).toBe(429);
    for (const { sessionId, clientRequestId } of started) {
      client.socket.emit("query:abort", { sessionId, clientRequestId });
      await client.ended(clientRequestId!);
    }
    for (const to of [a!, c!, late]) await expect.poll(async () => (await submit(to, "at once")).status, SOON).toBe(202);
  });
});
