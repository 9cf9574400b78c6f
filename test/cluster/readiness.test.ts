import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, CLUSTER_WORKFLOW, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";
import { openPooler } from "../harness/pooler.ts";
import { type PorticoProcess, runCommand } from "../harness/portico-process.ts";
import { openTcpLine, type TcpLine } from "../harness/tcp-line.ts";

const place = await clusterPlace();

describe.skipIf(!place)("probes of a process of a cluster", () => {
  let cluster: RunningCluster;
  let service: PorticoProcess;
  let postgres: TcpLine;
  let redis: TcpLine;
  beforeAll(async () => {
    const lines = await Promise.all([lineTo("PORTICO_POSTGRES_URL", 5432), lineTo("PORTICO_REDIS_URL", 6379)]);
    [postgres, redis] = lines.map(({ line }) => line) as [TcpLine, TcpLine];
    await writeDocuments(place!, {
      "workflows/greet.json": { nodes: { hello: { type: "transform", with: { value: 1 } } } },
    });
    const env = { ...Object.fromEntries(lines.map(({ variable, url }) => [variable, url])), PORTICO_PROBES_PORT: "0" };
    cluster = await startCluster(place!, { env: { ...env, PORTICO_CLUSTER_LEASE_MS: "2000" }, count: 1 });
    service = cluster.processes[0]!;
  }, 120_000);
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
    for (const line of [postgres, redis]) await line?.[Symbol.asyncDispose]();
  });

  async function lineTo(variable: string, port: number) {
    const url = new URL(place!.env[variable]!);
    const line = await openTcpLine(Number(url.port || port));
    [url.hostname, url.port] = ["127.0.0.1", String(line.port)];
    return { variable, url: url.href, line };
  }
  const ask = async (path: string, surface = "probes", of = service): Promise<[status: number, body: any]> => {
    const answer = await fetch(`${of.url(surface)}${path}`);
    return [answer.status, await answer.json()];
  };
  const ready = [200, { status: "ready" }];
  const isReady = () => expect.poll(() => ask("/readyz")).toEqual(ready);
  const failing = (reason: RegExp) =>
    expect.poll(() => ask("/readyz")).toEqual([503, { status: "service_not_ready", reason: expect.stringMatching(reason) }]);
  const measured = async (): Promise<string> => {
    const answer = await fetch(`${service.url("probes")}/metrics`, { headers: { authorization: `Bearer ${CLUSTER_OWNER}` } });
    expect(answer.status).toBe(200);
    return answer.text();
  };

  it("it is ready with its lease and both servers, on every listener with probes", async () => {
    await isReady();
    for (const surface of ["workflow", "agent"]) expect(await ask("/readyz", surface)).toEqual(ready);
  });

  it("it is not ready while PostgreSQL is away, says so without an address, lives on, and is ready when PostgreSQL is back", async () => {
    postgres.cut();
    await failing(/^PostgreSQL: not reachable; lease: no connection to PostgreSQL$/);
    expect((await ask("/healthz"))[0]).toBe(200);
    postgres.heal();
    await isReady();
  });

  it("its lease does not go through a pooler: with one, it does not start, and directUrl goes around it", async () => {
    const url = new URL(place!.env["PORTICO_POSTGRES_URL"]!);
    await using pooler = await openPooler(Number(url.port || 5432));
    [url.hostname, url.port] = ["127.0.0.1", String(pooler.port)];
    const env = { ...place!.env, PORTICO_POSTGRES_URL: url.href };
    const refused = await runCommand(["start", "cluster", "--json"], { cwd: place!.folder, env });
    expect([refused.code, refused.stderr.trimEnd().split("\n").at(-1)]).toEqual([
      69,
      expect.stringContaining("cluster.postgres.directUrl"),
    ]);
    const around = await cluster.add({ ...env, PORTICO_POSTGRES_DIRECT_URL: place!.env["PORTICO_POSTGRES_URL"]! });
    expect(await ask("/readyz", "agent", around)).toEqual(ready);
    expect(pooler.connections).toBeGreaterThan(0);
    expect(await cluster.retire(around)).toBe(0);
  });

  it("it is not ready while PostgreSQL is silent", async () => {
    postgres.hold();
    await failing(/^PostgreSQL: no answer in time; lease: (?:not renewed in time|no connection to PostgreSQL)$/);
    postgres.heal();
    postgres.reset();
    await isReady();
  });

  it("it stays ready without Redis, which its metrics show", async () => {
    expect(await measured()).toMatch(/^portico_redis_up 1$/m);
    redis.cut();
    await expect.poll(measured).toMatch(/^portico_redis_up 0$/m);
    expect(await ask("/readyz")).toEqual(ready);
    redis.heal();
    await expect.poll(measured).toMatch(/^portico_redis_up 1$/m);
  });

  it("its metrics tell of the lease, of seats, and of work that waits, by kind", async () => {
    const text = await measured();
    expect(text).toMatch(/^portico_engine_ready 1$/m);
    expect(Number(/^portico_engine_lease_age_seconds (\S+)$/m.exec(text)?.[1])).toBeLessThan(2);
    for (const name of ["seats", "executing", "waiting", "waiting_seconds"])
      expect(text).toMatch(new RegExp(String.raw`^portico_engine_${name}\{kind="workflow\S*"\} \d`, "m"));
    for (const state of ["busy", "free", "waiting"]) expect(text).toContain(`portico_postgres_connections{state="${state}"}`);
  });

  it("it is not ready from the beginning of a stop, and accepts requests for shutdownDelayMs more", async () => {
    const leaving = await cluster.add({ PORTICO_SHUTDOWN_DELAY_MS: "600000" });
    expect(await ask("/readyz", "workflow", leaving)).toEqual(ready);
    leaving.signal("SIGTERM");
    await expect
      .poll(() => ask("/readyz", "workflow", leaving))
      .toEqual([503, { status: "service_not_ready", reason: "The service is stopping" }]);
    const accepted = await fetch(`${leaving.url("workflow")}/api/workflow/webhook?id=greet`, {
      method: "POST",
      headers: { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" },
      body: "{}",
    });
    expect(accepted.status).toBe(200);
    leaving.signal("SIGTERM");
    expect((await leaving.exited).code).toBe(143);
  });
});
