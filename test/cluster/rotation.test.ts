import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { CLUSTER_OWNER, clusterPlace } from "../harness/cluster.ts";
import { startPortico } from "../harness/portico-process.ts";

const place = await clusterPlace();
if (!place) console.warn("Tests of clusters are skipped: no PostgreSQL or no Redis server answers");

const PATIENT = { timeout: 60_000, interval: 100 };

describe.skipIf(!place)("the user of cluster.postgres.url", () => {
  it("is read again from its file, and used for connections that are opened later: of the pool, and of the lease", async () => {
    const { database, folder, env } = place!;
    const role = `portico_test_${randomBytes(6).toString("hex")}`;
    onTestFinished(async () => {
      await place!.remove();
    });
    expect((await place!.run("migrate")).code).toBe(0);
    await database.query(`CREATE ROLE ${role} LOGIN SUPERUSER`);
    onTestFinished(async () => {
      await database.query(`DROP ROLE ${role}`);
    });
    const write = (user?: string) => {
      const url = new URL(database.url);
      if (user !== undefined) url.username = user;
      writeFileSync(join(folder, "postgres-url"), url.href, { mode: 0o600 });
    };
    write();
    const { PORTICO_POSTGRES_URL: _url, ...rest } = env;
    const config = { cluster: { postgres: { url: { file: "postgres-url" } } }, rotation: { watchMs: 20 } };
    await using service = await startPortico({ cwd: folder, args: ["cluster"], env: rest, config, hasOwnProcess: true });
    const ours = `FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'portico%'`;
    const users = async () => (await database.query(`SELECT DISTINCT usename ${ours}`)).map(({ usename }) => usename as string);
    const ask = async () =>
      (await fetch(`${service.url("agent")}/api/runs`, { headers: { "x-agent-service-token": CLUSTER_OWNER } })).status;
    expect(await ask()).toBe(200);
    const [first] = await users();
    expect(first).not.toBe(role);
    write(role);
    await expect.poll(() => service.stderr(), PATIENT).toContain("cluster.postgres");
    // Open connections stay until they end.
    expect(await users()).toContain(first);
    await database.query(`SELECT pg_terminate_backend(pid) ${ours}`);
    await expect.poll(ask, PATIENT).toBe(200);
    await expect.poll(users, PATIENT).toEqual([role]);
    await expect.poll(async () => (await fetch(`${service.url("agent")}/readyz`)).status, PATIENT).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});
