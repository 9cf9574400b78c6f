import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CLUSTER_WORKFLOW, type ClusterPlace, clusterPlace } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";
import { runCommand, runPortico, startPortico } from "../harness/portico-process.ts";
import { hasRedisServer, ownRedis } from "../harness/redis.ts";

const first = await clusterPlace();
await first?.remove();

interface Finding {
  readonly about: string;
  readonly message: string;
  readonly isWrong: boolean;
  readonly fix?: string;
}

describe.skipIf(!first)("a cluster with servers that do not fit", () => {
  let place: ClusterPlace;
  beforeEach(async () => {
    place = (await clusterPlace())!;
    expect((await place.run("migrate")).code).toBe(0);
  });
  afterEach(() => place.remove());
  const wrongOf = (stdout: string) => (JSON.parse(stdout) as Finding[]).filter(({ isWrong }) => isWrong);
  const doctor = async (env = place.env) => wrongOf((await runCommand(["doctor", "--json"], { cwd: place.folder, env })).stdout);
  const start = (env = place.env) => runCommand(["start", "cluster", "--json"], { cwd: place.folder, env });

  it("a schema of another program is refused by migrate and by a start, and stays as it was", async () => {
    await place.database.query(`DROP SCHEMA portico CASCADE; CREATE SCHEMA portico; CREATE TABLE portico.guests (name text);
      INSERT INTO portico.guests VALUES ('Ada')`);
    for (const args of [["migrate"], ["start", "cluster", "--json"], ["token", "list"]]) {
      const { code, stdout, stderr } = await place.run(...args);
      expect([args, code, stdout]).toEqual([args, 78, ""]);
      expect(stderr.trimEnd().split("\n")).toEqual(["The schema holds tables, but is not a records store"]);
    }
    const [finding] = await doctor();
    expect([finding!.message, finding!.fix]).toEqual([
      "The schema holds tables, but is not a records store",
      "correct cluster.postgres",
    ]);
    const tables = await place.database.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'portico'");
    expect(tables).toEqual([{ table_name: "guests" }]);
    expect(await place.database.query("SELECT * FROM portico.guests")).toEqual([{ name: "Ada" }]);
  });

  it("a schema of a newer version is refused by migrate and by a start, and stays as it was", async () => {
    await place.database.query("UPDATE portico._store SET format = 99");
    for (const args of [["migrate"], ["start", "cluster", "--json"], ["token", "list"]]) {
      const { code, stdout, stderr } = await place.run(...args);
      expect([args, code, stdout]).toEqual([args, 78, ""]);
      expect(stderr).toMatch(/newer/);
    }
    expect(await doctor()).toEqual([expect.objectContaining({ about: "schema", message: expect.stringContaining("newer") })]);
    expect(await place.database.query("SELECT * FROM portico._store")).toEqual([{ format: 99 }]);
  });

  it.each([
    ["behind", 3_600_000],
    ["ahead of", -3_600_000],
  ])("a clock that differs by more than the lease is reported by doctor (the servers are %s)", async (word, ms) => {
    const { stdout } = await runPortico(["doctor", "--json"], { cwd: place.folder, env: place.env, before: shiftClock(ms) });
    const fix = "synchronize the clocks of all machines (NTP)";
    expect(wrongOf(stdout)).toEqual([
      expect.objectContaining({ about: "PostgreSQL", message: expect.stringContaining(word), fix }),
      expect.objectContaining({ about: "Redis", message: expect.stringContaining(word), fix }),
    ]);
  });

  it("a process whose clock is an hour ahead takes no work from others, and theirs is not taken from it", async () => {
    await writeDocuments(place, {
      "workflows/slow.json": { nodes: { wait: { type: "wait", with: { for: "1s" } } } },
    });
    const env = { ...place.env, PORTICO_CLUSTER_LEASE_MS: "1000" };
    const options = { cwd: place.folder, args: ["cluster"], env, hasOwnProcess: true };
    await using right = await startPortico(options);
    await using wrong = await startPortico({ ...options, before: shiftClock(3_600_000) });
    const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" };
    for (const service of [right, wrong, right, wrong]) {
      const url = `${service.url("workflow")}/api/workflow`;
      const accepted = await fetch(`${url}/webhook?id=slow`, { method: "POST", headers, body: "{}" });
      const { runId } = (await accepted.json()) as { runId: string };
      const statusOf = async () => ((await (await fetch(`${url}/slow/runs/${runId}`, { headers })).json()) as any).status;
      await expect.poll(statusOf).toBe("completed");
    }
    for (const { stderr } of [right, wrong]) expect(stderr()).not.toMatch(/is lost|was not heard of/);
  });

  it.skipIf(!hasRedisServer())("a Redis that evicts keys is reported by doctor", async () => {
    await using redis = await ownRedis({ settings: ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"] });
    const env = { ...place.env, PORTICO_REDIS_URL: redis.url };
    expect(await doctor(env)).toEqual([
      expect.objectContaining({
        about: "Redis",
        message: expect.stringContaining("allkeys-lru"),
        fix: "set maxmemory-policy to noeviction",
      }),
    ]);
  });

  it("a Redis that is out of reach ends a start with exit code 69 and the reason, and doctor reports it", async () => {
    const env = { ...place.env, PORTICO_REDIS_URL: "redis://127.0.0.1:1" };
    const { code, stdout, stderr } = await start(env);
    const line = "Redis cannot be reached, or it refuses the connection (ECONNREFUSED)";
    expect([code, stdout, stderr]).toEqual([69, "", `${line}\n`]);
    expect(await doctor(env)).toEqual([expect.objectContaining({ about: "Redis", message: line })]);
  });

  it.skipIf(!hasRedisServer())("a wrong password of Redis ends a start with exit code 69, and is not shown", async () => {
    await using redis = await ownRedis({ settings: ["--requirepass", "right"], connection: { password: "right" } });
    const env = { ...place.env, PORTICO_REDIS_URL: `redis://:hidden-password@127.0.0.1:${redis.port}` };
    const { code, stderr } = await start(env);
    expect([code, stderr]).toEqual([69, "Redis cannot be reached, or it refuses the connection (WRONGPASS)\n"]);
  });

  it("another instance key ends a start with exit code 78, and doctor reports it", async () => {
    await place.run("token", "list");
    const env = { ...place.env, PORTICO_INSTANCE_KEY: Buffer.alloc(32, 9).toString("base64url") };
    const { code, stdout, stderr } = await start(env);
    expect([code, stdout, stderr.trimEnd().split("\n")]).toEqual([78, "", [expect.stringContaining("key")]]);
    expect((await doctor(env)).map(({ about }) => about)).toEqual(["instance key"]);
    expect((await doctor()).map(({ about }) => about)).toEqual([]);
  });
});

/** Lets a process believe that it is later by some milliseconds. */
function shiftClock(ms: number): string {
  return `const now = Date.now; Date.now = () => now() + ${ms};`;
}
