import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, CLUSTER_WORKFLOW, clusterPlace, type ClusterPlace } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";
import { type PorticoProcess, runCommand, startPortico } from "../harness/portico-process.ts";
import {
  type ArchivingPostgresServer,
  hasPostgresServer,
  postgresServer,
  type PostgresServer,
} from "../harness/postgres-server.ts";
import { hasRedisServer, ownRedis, type OwnRedis } from "../harness/redis.ts";
import { root } from "../rooms/repository.ts";

const place = await clusterPlace();

describe.skipIf(!place || !hasPostgresServer() || !hasRedisServer())("a cluster restored to a point in time", () => {
  let original: ArchivingPostgresServer;
  let restored: PostgresServer;
  let redis: OwnRedis;
  const processes: PorticoProcess[] = [];
  const settings = (postgres: PostgresServer): ClusterPlace["env"] => ({
    ...{ ...place!.env, PORTICO_POSTGRES_URL: postgres.url, PORTICO_REDIS_URL: redis.url },
    PORTICO_REDIS_PREFIX: "restored",
    PORTICO_CLUSTER_LEASE_MS: "1000",
  });
  const begin = async (env: ClusterPlace["env"]): Promise<PorticoProcess> => {
    const service = await startPortico({ cwd: place!.folder, args: ["cluster"], env, hasOwnProcess: true });
    processes.push(service);
    return service;
  };
  const workflows = { "x-workflow-service-token": CLUSTER_WORKFLOW, "content-type": "application/json" };
  const owner = { "x-agent-service-token": CLUSTER_OWNER };
  const trigger = async (service: PorticoProcess, id: string): Promise<string> => {
    const url = `${service.url("workflow")}/api/workflow/webhook?id=${id}`;
    const answer = await fetch(url, { method: "POST", headers: workflows, body: "{}" });
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { runId: string }).runId;
  };
  const run = async (service: PorticoProcess, id: string, runId: string) => {
    const answer = await fetch(`${service.url("workflow")}/api/workflow/${id}/runs/${runId}`, { headers: workflows });
    return answer.status === 200 ? ((await answer.json()) as { status: string }).status : answer.status;
  };
  const upload = async (service: PorticoProcess, name: string): Promise<string> => {
    const form = new FormData();
    form.append("file", new Blob([`the text of ${name}`], { type: "text/plain" }), name);
    const answer = await fetch(`${service.url("agent")}/api/attachments`, { method: "POST", headers: owner, body: form });
    expect(answer.status).toBe(201);
    return ((await answer.json()) as { attachmentId: string }).attachmentId;
  };
  const download = async (service: PorticoProcess, id: string) => {
    const answer = await fetch(`${service.url("agent")}/api/attachments/${id}`, { headers: owner });
    return answer.status === 200 ? answer.text() : answer.status;
  };

  beforeAll(async () => {
    redis = await ownRedis();
    original = await postgresServer({ archives: true });
    await writeDocuments(
      { ...place!, run: (...args) => runCommand(args, { cwd: place!.folder, env: settings(original) }) },
      {
        "workflows/gated.json": { nodes: { ok: { type: "human_gate", with: { title: "Go on?" } } } },
        "workflows/slow.json": { nodes: { wait: { type: "wait", with: { for: "2s" } } } },
      },
    );
  }, 180_000);
  afterAll(async () => {
    for (const each of processes) await each[Symbol.asyncDispose]();
    for (const each of [restored, original, redis]) await each?.[Symbol.asyncDispose]();
    await place!.remove();
  });

  it("has everything that was accepted until that point, continues it, knows nothing of later, and an older Redis harms nothing", async () => {
    const page = readFileSync(join(root, "docs/cluster-operations.md"), "utf8");
    const command = /^pg_basebackup .*$/m.exec(page)![0];
    const first = await begin(settings(original));
    const safeToken = (await first.run("token", "issue", "--provider", "demo")).stdout.trim();
    const gated = await trigger(first, "gated");
    await expect.poll(() => run(first, "gated", gated)).toBe("waiting_human");
    const backup = await original.backUp(command);
    // After the base backup: these are in the archived log alone.
    const early = await upload(first, "early.txt");
    const slow = await trigger(first, "slow");

    const [{ now }] = (await original.ask("SELECT now()::text AS now")) as [{ now: string }];
    await original.ask("SELECT pg_switch_wal()");
    const late = await upload(first, "late.txt");
    const lateGate = await trigger(first, "gated");
    await expect.poll(() => run(first, "gated", lateGate)).toBe("waiting_human");
    await original.ask("SELECT pg_switch_wal()");
    await original.archived();
    // The end of the machine.
    first.signal("SIGKILL");
    await first.exited;
    await original.stop("immediate");

    restored = await postgresServer({ restored: { from: backup, until: now }, settings: { fsync: "on" } });
    const second = await begin(settings(restored));
    await expect.poll(() => run(second, "slow", slow)).toBe("completed");
    expect(await run(second, "gated", gated)).toBe("waiting_human");
    const decided = await second.run("workflow", "approve", gated, "--url", second.url("workflow"));
    expect([decided.code, decided.stderr]).toEqual([0, ""]);
    await expect.poll(() => run(second, "gated", gated)).toBe("completed");
    const models = await fetch(`${second.url("proxy")}/models`, { headers: { authorization: `Bearer ${safeToken}` } });
    expect(models.status).toBe(200);
    expect(await download(second, early)).toBe("the text of early.txt");

    // Redis still has what it had at the end of the first machine, the queue of later runs among it.
    expect(await run(second, "gated", lateGate)).toBe(404);
    expect(await download(second, late)).toBe(404);
    const again = await trigger(second, "slow");
    await expect.poll(() => run(second, "slow", again)).toBe("completed");

    await redis.ask("FLUSHALL");
    const afterWipe = await Promise.all(Array.from({ length: 5 }, () => trigger(second, "slow")));
    for (const each of afterWipe) await expect.poll(() => run(second, "slow", each)).toBe("completed");
  });

  it("doctor names blobs that no record knows, and records whose blob is missing", async () => {
    const doctor = async () => {
      const { stdout } = await runCommand(["doctor", "--json"], { cwd: place!.folder, env: settings(restored) });
      const findings = JSON.parse(stdout) as { about: string; message: string; isWrong: boolean }[];
      return findings.filter(({ about }) => about === "blobs").map(({ message, isWrong }) => [isWrong, message]);
    };
    expect(await doctor()).toEqual([
      [false, "their store answers"],
      [false, expect.stringMatching(/^1 file has no record.*: attachments\/[\w-]+$/)],
    ]);
    for (const folder of ["attachments", "media"])
      rmSync(join(place!.env["PORTICO_CLUSTER_BLOBS_DIR"]!, folder), { recursive: true, force: true });
    expect(await doctor()).toEqual([
      [false, "their store answers"],
      [true, expect.stringMatching(/^1 record has no file: attachments\/[\w-]+$/)],
    ]);
  });
});
