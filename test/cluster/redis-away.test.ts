import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clusterPlace } from "../harness/cluster.ts";
import { type FailingCluster, startFailingCluster, WHOLE_ANSWER } from "../harness/failing-cluster.ts";
import { hasRedisServer, type OwnRedis, ownRedis } from "../harness/redis.ts";

const first = await clusterPlace();
await first?.remove();

describe.skipIf(!first || !hasRedisServer())("what a cluster does while Redis fails", () => {
  let redis: OwnRedis;
  let failing: FailingCluster;
  beforeAll(async () => {
    redis = await ownRedis();
    failing = await startFailingCluster({ env: { PORTICO_REDIS_URL: redis.url } });
  }, 120_000);
  afterAll(async () => {
    await failing?.[Symbol.asyncDispose]();
    await redis?.[Symbol.asyncDispose]();
  });

  /** Work that has begun: turns in both processes for clients of each, and runs that ask the model or wait. */
  async function beginWork() {
    const before = failing.asked();
    const [a, b] = failing.processes;
    const clients = [failing.client(a, a), failing.client(a, b), failing.client(b, a), failing.client()];
    const turns = await Promise.all(clients.map((client, index) => failing.beginTurn(client, `Turn ${index}`)));
    const asking = await failing.accept(4, "asks");
    await expect.poll(failing.asked).toBe(before + turns.length + asking.length);
    const asked = failing.asked();
    return { clients, turns, asking, slow: await failing.accept(4, "slow"), asked };
  }
  /** All of it ends. The model was asked `more` times in addition. */
  async function allEnds({ turns, asking, slow, asked }: Awaited<ReturnType<typeof beginWork>>, more = 0) {
    failing.release();
    for (const { ended } of turns) expect(await ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
    await failing.completed("asks", asking);
    await failing.completed("slow", slow);
    expect(failing.asked()).toBe(asked + more);
  }
  /** Everything works as before. */
  async function recovered() {
    await allEnds(await beginWork());
  }

  it.each([
    ["frozen", () => redis.freeze(), () => redis.thaw()],
    ["killed", () => redis.kill(), () => redis.start()],
  ])("%s: calls are accepted, and all work ends, before it is back", async (_, away, back) => {
    const work = await beginWork();
    await away();
    const more = await failing.accept(8, "slow");
    const turn = await failing.beginTurn(work.clients[0]!, "Meanwhile");
    await allEnds(work, 1);
    expect(await turn.ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
    await failing.completed("slow", more);
    await back();
    await recovered();
  });

  it("away: a query is accepted by the process of its connection, and gets 503 from others", async () => {
    const [a, b] = failing.processes;
    const here = failing.client(a);
    const elsewhere = failing.client(a, b);
    await Promise.all([here.connected(), elsewhere.connected()]);
    await redis.kill();
    const turn = await failing.beginTurn(here, "Here");
    const states: string[] = [];
    const query = elsewhere.submit({ agentId: "helper", prompt: "Elsewhere" }, { onState: (state) => states.push(state) });
    await expect.poll(() => states).toContain("absent");
    expect(failing.refusals).toContain("503 realtime_unavailable");
    const asked = failing.asked();
    await redis.start();
    await expect.poll(failing.asked).toBe(asked + 1);
    failing.release();
    expect((await turn.ended).end.status).toBe("completed");
    expect((await query.ended).status).toBe("completed");
  });

  it.each([
    ["before work waits in it", 0],
    ["while work waits in it", 200],
  ])("wiped %s: no execution is disturbed, and waiting work begins", async (_, waiting) => {
    const work = await beginWork();
    const accepted = failing.accept(waiting, "slow");
    await redis.ask("FLUSHALL");
    await failing.completed("slow", await accepted);
    await redis.ask("FLUSHALL");
    await allEnds(work);
    await recovered();
  });
});
