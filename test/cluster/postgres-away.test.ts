import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, clusterPlace } from "../harness/cluster.ts";
import { type FailingCluster, startFailingCluster, WHOLE_ANSWER } from "../harness/failing-cluster.ts";
import { hasPostgresServer, type PostgresServer, postgresServer } from "../harness/postgres-server.ts";

const first = await clusterPlace();
await first?.remove();

const LEASE_MS = 2000;

describe.skipIf(!first || !hasPostgresServer())("what a cluster does while PostgreSQL is away", () => {
  let server: PostgresServer;
  let failing: FailingCluster;
  beforeAll(async () => {
    server = await postgresServer();
    const env = { PORTICO_POSTGRES_URL: server.url, PORTICO_CLUSTER_LEASE_MS: `${LEASE_MS}` };
    failing = await startFailingCluster({ env });
  }, 120_000);
  afterAll(async () => {
    await failing?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  async function beginWork() {
    const before = failing.asked();
    const [a, b] = failing.processes;
    const clients = [failing.client(a, a), failing.client(a, b), failing.client(b, a)];
    const turns = await Promise.all(clients.map((client, index) => failing.beginTurn(client, `Turn ${index}`)));
    const asking = await failing.accept(4, "asks");
    await expect.poll(failing.asked).toBe(before + turns.length + asking.length);
    return { turns, asking, slow: await failing.accept(4, "slow") };
  }

  /** Status and error of calls that read and write records. */
  const callsOfTheAgentService = () => {
    const url = failing.processes[0]!.process.url("agent");
    const headers = { "x-agent-service-token": CLUSTER_OWNER, "content-type": "application/json" };
    const calls = [
      ["GET", "/api/runs"],
      ["GET", "/api/safe-tokens"],
      ["POST", "/api/safe-tokens", '{"providerId":"main"}'],
    ] as const;
    return Promise.all(
      calls.map(async ([method, path, body]) => {
        const answer = await fetch(new URL(path, url), { method, headers, ...(body !== undefined && { body }) });
        return [answer.status, (await answer.json()).error];
      }),
    );
  };

  it.each([
    ["restarted", "fast", 0],
    ["restarted after a crash", "immediate", 0],
    ["away for longer than the lease", "fast", 3 * LEASE_MS],
  ] as const)(
    "%s: calls get 503, and executing work goes on: none is interrupted, closed or done twice",
    async (_, mode, awayMs) => {
      const { turns, asking, slow } = await beginWork();
      const asked = failing.asked();
      await server.stop(mode);
      const refused = await failing.trigger("slow");
      expect([refused.status, await refused.json()]).toEqual([503, { error: expect.any(String), code: "run_not_reserved" }]);
      expect(await failing.statusOf("slow", slow[0]!)).toBe("answered with 503");
      expect(await callsOfTheAgentService()).toEqual([
        [503, "The service cannot reach its store"],
        [503, "store_unavailable"],
        [503, "store_unavailable"],
      ]);
      // What the model says meanwhile is kept until it can be stored.
      failing.release();
      await wait(awayMs);
      await server.start();
      for (const { ended } of turns) expect(await ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
      await failing.completed("asks", asking);
      await failing.completed("slow", slow);
      expect(failing.asked()).toBe(asked);
      await failing.completed("slow", await failing.accept(4, "slow"));
    },
  );
});
