import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CLUSTER_WORKFLOW, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";
import { hasRedisServer, type OwnRedis, ownRedis } from "../harness/redis.ts";
import { openTcpLine, type TcpLine } from "../harness/tcp-line.ts";

const first = await clusterPlace();
await first?.remove();

describe.skipIf(!first || !hasRedisServer())("what a cluster loses", () => {
  let redis: OwnRedis;
  let line: TcpLine;
  let cluster: RunningCluster;
  beforeEach(async () => {
    redis = await ownRedis();
    const place = (await clusterPlace())!;
    const database = new URL(place.env["PORTICO_POSTGRES_URL"]!);
    line = await openTcpLine(Number(database.port || 5432));
    database.port = String(line.port);
    await writeDocuments(place, { "workflows/slow.json": SLOW });
    cluster = await startCluster(place, { env: { PORTICO_REDIS_URL: redis.url, PORTICO_POSTGRES_URL: database.href }, count: 2 });
  }, 120_000);
  afterEach(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await line?.[Symbol.asyncDispose]();
    await redis?.[Symbol.asyncDispose]();
  });

  const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" };
  const trigger = () => fetch(`${cluster.url("workflow")}/api/workflow/webhook?id=slow`, { method: "POST", headers, body: "{}" });
  const statusOf = async (runId: string): Promise<string> => {
    const answer = await fetch(`${cluster.url("workflow")}/api/workflow/slow/runs/${runId}`, { headers });
    return answer.status === 200 ? ((await answer.json()) as { status: string }).status : `answered with ${answer.status}`;
  };
  /** Runs that were accepted; each trigger must be. */
  async function accept(count: number): Promise<string[]> {
    const answers = await Promise.all(Array.from({ length: count }, trigger));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    return Promise.all(answers.map(async (answer) => ((await answer.json()) as { runId: string }).runId));
  }
  async function completed(runIds: readonly string[]): Promise<void> {
    for (const runId of runIds) await expect.poll(() => statusOf(runId)).toBe("completed");
  }

  it("Redis, with all that it holds: work is accepted all the while, and all of it completes", async () => {
    const before = await accept(8);
    await redis.kill();
    const meanwhile = await accept(8);
    await redis.start();
    await completed([...before, ...meanwhile, ...(await accept(8))]);
  });

  it("Redis, for some seconds in which it answers nothing: the same", async () => {
    const before = await accept(8);
    redis.freeze();
    const meanwhile = await accept(8);
    redis.thaw();
    await completed([...before, ...meanwhile]);
  });

  it("PostgreSQL: work is refused with 503 meanwhile, accepted work completes, and the cluster recovers by itself", async () => {
    const before = await accept(8);
    line.cut();
    const refused = await trigger();
    expect(refused.status).toBe(503);
    line.heal();
    await expect.poll(async () => (await trigger()).status).toBe(200);
    await completed(before);
  });
});

const SLOW = {
  nodes: {
    first: { type: "transform", with: { value: 1 } },
    wait: { type: "wait", needs: ["first"], with: { for: "500ms" } },
  },
};
