import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { clusterPlace, type ClusterPlace } from "../harness/cluster.ts";
import { type FailingCluster, startFailingCluster, WHOLE_ANSWER } from "../harness/failing-cluster.ts";
import { keepsStatements, type PgBouncer, pgBouncerVersion, startPgBouncer } from "../harness/pgbouncer.ts";
import { runCommand } from "../harness/portico-process.ts";
import { type PostgresDatabase, postgresDatabase } from "../harness/postgres.ts";

const first = await clusterPlace();
await first?.remove();
const isThere = first !== undefined && pgBouncerVersion() !== undefined;
if (first && !isThere) console.warn("Tests of poolers are skipped: this machine has no pgbouncer");

/** Fewer than the processes have connections. */
const SESSIONS = 4;

describe.skipIf(!isThere)("a cluster behind PgBouncer in transaction mode", () => {
  let failing: FailingCluster;
  let bouncer: PgBouncer;
  let database: PostgresDatabase;
  afterEach(async () => {
    await failing?.[Symbol.asyncDispose]();
    await bouncer?.[Symbol.asyncDispose]();
    await database?.drop();
  });

  const modes = keepsStatements() ? ["true", "false"] : ["false"];
  it.each(modes)(
    "accepts and executes work, survives its restart, and takes over from a killed process (preparedStatements: %s)",
    async (preparedStatements) => {
      database = (await postgresDatabase())!;
      bouncer = await startPgBouncer(database.url, { poolMode: "transaction", sessions: SESSIONS });
      failing = await startFailingCluster({
        env: {
          PORTICO_POSTGRES_URL: bouncer.url,
          PORTICO_POSTGRES_DIRECT_URL: database.url,
          PORTICO_POSTGRES_PREPARED_STATEMENTS: preparedStatements,
        },
      });
      const [a, b] = failing.processes;
      await failing.completed("slow", await failing.accept(40, "slow"));
      const turn = await failing.beginTurn(failing.client(b, a), "Hello");
      const asking = await failing.accept(6, "asks");
      await expect.poll(failing.asked).toBe(7);

      await bouncer.restart();
      const { runId } = (await (await failing.trigger("slow")).json()) as { runId: string };
      await failing.completed("slow", [runId]);
      failing.release();
      expect(await turn.ended).toMatchObject({ text: WHOLE_ANSWER, end: { status: "completed" } });
      await failing.completed("asks", asking);

      const left = await failing.accept(4, "asks", a);
      await expect.poll(failing.asked).toBe(11);
      a!.process.signal("SIGKILL");
      await expect.poll(failing.asked).toBeGreaterThan(11);
      failing.release();
      for (const run of left) {
        await expect
          .poll(() => {
            failing.release();
            return failing.statusOf("asks", run, b);
          })
          .toBe("completed");
      }
      const logs = failing.processes.map(({ process }) => process.stderr()).join("");
      expect(logs).not.toMatch(/26000|42P05/);
    },
    120_000,
  );
});

describe.skipIf(!isThere)("a pooler that does not fit", () => {
  let own: ClusterPlace;
  let bouncer: PgBouncer;
  beforeAll(async () => {
    own = (await clusterPlace())!;
    expect((await own.run("migrate")).code).toBe(0);
    bouncer = await startPgBouncer(own.env["PORTICO_POSTGRES_URL"]!, { poolMode: "transaction", sessions: SESSIONS });
  });
  afterAll(async () => {
    await bouncer[Symbol.asyncDispose]();
    await own.remove();
  });
  const env = (more: Readonly<Record<string, string>>) => ({ ...own.env, PORTICO_POSTGRES_URL: bouncer.url, ...more });
  const wrongOf = async (more: Readonly<Record<string, string>>) => {
    const { stdout } = await runCommand(["doctor", "--json"], { cwd: own.folder, env: env(more) });
    const findings = JSON.parse(stdout) as { message: string; isWrong: boolean; fix?: string }[];
    return findings.filter(({ isWrong }) => isWrong).map(({ message, fix }) => [message, fix]);
  };
  const direct = () => ({ PORTICO_POSTGRES_DIRECT_URL: own.env["PORTICO_POSTGRES_URL"]! });

  it("is reported by doctor if the lease goes through it", async () => {
    expect(await wrongOf({ PORTICO_POSTGRES_PREPARED_STATEMENTS: "false" })).toEqual([
      ["the connection of the lease goes through a pooler", expect.stringContaining("cluster.postgres.directUrl")],
    ]);
    expect(await wrongOf({ PORTICO_POSTGRES_PREPARED_STATEMENTS: "false", ...direct() })).toEqual([]);
  });

  it.skipIf(keepsStatements())("ends a start and is reported by doctor if it loses prepared statements", async () => {
    const { code, stdout, stderr } = await runCommand(["start", "cluster", "--json"], { cwd: own.folder, env: env(direct()) });
    expect([code, stdout]).toEqual([69, ""]);
    expect(stderr).toContain("cluster.postgres.preparedStatements");
    expect(await wrongOf(direct())).toEqual([
      ["its pooler loses prepared statements", expect.stringContaining("cluster.postgres.preparedStatements")],
    ]);
  });
});
