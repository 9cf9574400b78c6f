import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createManualClock } from "@portico/adapters/clock/manual";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { type Adapter, ports } from "@portico/core";
import { requestKey } from "../../../plugins/src/conversations-runs/requests/client-requests.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AgentService, type AgentServiceOptions, startAgentService, startBody } from "../../harness/agent-app.ts";
import { isClusterRun } from "../../harness/members.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

let folder: ReturnType<typeof temporaryFolder>;
const services: AgentService[] = [];
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  for (const service of services.splice(0).reverse()) await service.close().catch(() => {});
  folder.remove();
});

async function open(options: AgentServiceOptions = {}): Promise<AgentService> {
  const service = await startAgentService({ dataDir: folder.path, ...options });
  services.push(service);
  return service;
}
const look = async (service: AgentService, clientRequestId: string) =>
  (
    await service.call("owner", "POST", "/api/query/client-requests/lookup", {
      agentId: "helper",
      requests: [{ clientRequestId }],
    })
  ).body.results[0];

/** A log that is slow to read: closing a turn takes a moment. */
function slowLog(): Adapter {
  const adapter = sqliteLog({});
  const open: typeof adapter.spec.open = async (...given) => {
    const log = (await adapter.spec.open(...given)) as ports.EventLog;
    const read = log.read.bind(log);
    return Object.assign(log, {
      async *read(...asked: Parameters<typeof read>) {
        await sleep(100);
        yield* read(...asked);
      },
    });
  };
  return { ...adapter, spec: { ...adapter.spec, open } };
}

describe("after a crash (open points 9)", () => {
  it("what was executing is closed: failed, process_restart, with its partial output kept; what had not begun runs once", async () => {
    const first = await open();
    first.engine.on("executing", async (_turn, context) => {
      await context.say({ type: "text", delta: "half an " });
      await context.say({ type: "text", delta: "answer" });
      await new Promise(() => {});
    });
    const client = await first.connect("owner");
    const executing = await client.start("executing");
    const { runId, sessionId, conversationId } = await client.event("query:started", executing.clientRequestId);
    const waiting = await client.start("waiting", {}, { conversationId });
    const { app } = first;
    // Written down at the latest a tenth of a second after it was said.
    const transcript = `turns/${(await requestOf(app, executing.clientRequestId)).turnId}`;
    const written = async () => JSON.stringify(await Array.fromAsync(app.port(ports.log).read(transcript)));
    await expect.poll(written).toContain('"answer"');

    // Another process takes the stores over, as after a kill: the first never comes to write again.
    const second = await open();
    const back = await second.connect("owner", {
      clientInstanceId: client.clientInstanceId,
      received: { [executing.clientRequestId]: 1, [waiting.clientRequestId]: 0 },
    });
    expect((await back.ended(executing.clientRequestId)).data).toMatchObject({ code: "process_restart", sessionId });
    expect((await back.ended(waiting.clientRequestId)).data).toMatchObject({ terminal: { status: "completed" } });
    expect(second.engine.played).toEqual(["waiting"]);
    const { body } = await second.call("owner", "GET", `/api/runs/${runId}/receipt`);
    expect(body.receipts).toMatchObject([
      { input: "executing", output: "half an answer", outcome: { status: "failed" } },
      { input: "waiting", outcome: { status: "success" } },
    ]);
    const messages = await second.call("owner", "GET", `/api/conversations/${conversationId}/messages`);
    expect(messages.body.messages.map(({ parts }: any) => parts[0].text)).toEqual([
      "executing",
      "half an answer",
      "waiting",
      "You said: waiting",
    ]);
    // A process of a cluster that was killed counts as living for some seconds.
    await expect
      .poll(() => look(second, executing.clientRequestId))
      .toMatchObject({
        status: "committed",
        committedServerInstance: "previous",
        executionWitness: "user-message",
      });
  });

  // In a cluster, other processes close them, without a start.
  it.skipIf(isClusterRun)("a client that looks right after the restart finds no run that only seems to execute", async () => {
    const first = await open();
    first.engine.otherwise(() => new Promise(() => {}));
    const client = await first.connect("owner");
    const asked = await Promise.all(Array.from({ length: 3 }, (_, at) => client.start(`executing ${at}`)));
    for (const { clientRequestId } of asked) await client.event("query:started", clientRequestId);
    const records = sqliteRecords({ path: join(folder.path, "records.sqlite") });
    const secrets = fileSecrets({ path: join(folder.path, "credentials.json") });
    const second = await open({ shared: [records, slowLog(), embeddedEngine({}), secrets] });
    const { body } = await second.call("owner", "GET", "/api/runs");
    expect(body.runs.map(({ status }: { status: string }) => status)).toEqual(asked.map(() => "failed"));
  });

  it("a run whose turn was closed has failure_reason process_restart", async () => {
    const first = await open();
    first.engine.on("executing", () => new Promise(() => {}));
    const client = await first.connect("owner");
    const { clientRequestId } = await client.start("executing");
    const { runId } = await client.event("query:started", clientRequestId);
    const second = await open();
    const run = async () => (await second.call("owner", "GET", `/api/runs/${runId}`)).body;
    await expect.poll(run).toMatchObject({ status: "failed", failure_reason: "process_restart" });
    const after = await second.connect("owner");
    const next = await after.followUp(runId.replace("run_", "ses_"), "go on");
    expect((await after.ended(next.clientRequestId)).event).toBe("query:complete");
  });

  it("a replay after the restart is a duplicate, whichever end the first had", async () => {
    const first = await open();
    const client = await first.connect("owner");
    const { sent, clientRequestId } = await client.start("once");
    await client.ended(clientRequestId);
    await first.close();
    const second = await open();
    const back = await second.connect("owner");
    const again = await second.call("owner", "POST", "/api/query/start", { ...sent, originSocketId: back.id });
    expect(again).toMatchObject({ status: 202, body: { duplicate: true } });
    expect(second.engine.played).toEqual([]);
  });

  it("a stop that waits no longer marks the turn: interrupted, system_suspension, with what was said", async () => {
    const first = await open();
    first.engine.on("long work", async (_turn, context) => {
      await context.say({ type: "text", delta: "some" });
      await untilStopped(context);
    });
    const client = await first.connect("owner");
    const { clientRequestId } = await client.start("long work");
    await client.event("query:message", clientRequestId);
    await first.app.port(ports.engine).drain(0);
    expect((await client.ended(clientRequestId)).data.terminal).toMatchObject({
      status: "interrupted",
      reason: "system_suspension",
      partial: "some",
    });
    await first.close();
    const second = await open();
    expect((await look(second, clientRequestId)).status).toBe("committed");
    expect(second.engine.played).toEqual([]);
  });
});

describe("what a registry can tell (3.4, open points 7 and 10)", () => {
  it("one on its first installation answers absent for an ID it never saw", async () => {
    expect(await look(await open(), "never")).toEqual({ clientRequestId: "never", status: "absent" });
  });

  it("one that was lost answers unknown, until it has covered the whole protection window", async () => {
    await (await open()).close();
    for (const name of ["records.sqlite", "records.sqlite-wal", "records.sqlite-shm"])
      rmSync(join(folder.path, name), { force: true });
    const clock = createManualClock();
    const after = await open({ clock, runtime: { tombstoneRetentionMs: 600_000 } });
    expect(await look(after, "never")).toEqual({ clientRequestId: "never", status: "unknown" });
    await clock.advance(600_000 - 1);
    expect((await look(after, "never")).status).toBe("unknown");
    await clock.advance(1);
    expect((await look(after, "never")).status).toBe("absent");
  });

  it("a request is remembered for tombstoneRetentionMs after its end, what it said for autoReplayRetentionMs", async () => {
    const clock = createManualClock();
    const service = await open({ clock, runtime: { tombstoneRetentionMs: 1_200_000 } });
    const client = await service.connect("owner");
    const { clientRequestId, sent } = await client.start("remembered");
    await client.ended(clientRequestId);
    const { turnId } = await requestOf(service.app, clientRequestId);
    const log = service.app.port(ports.log);
    await clock.jump(9 * 60_000);
    expect(await log.count(`turns/${turnId}`)).toBeGreaterThan(0);
    await clock.advance(2 * 60_000);
    await expect.poll(() => log.count(`turns/${turnId}`)).toBe(0);
    expect((await look(service, clientRequestId)).status).toBe("committed");
    const again = await service.call("owner", "POST", "/api/query/start", sent);
    expect(again.body.duplicate).toBe(true);
    await clock.advance(1_200_000);
    // A sweep that is under way meanwhile began too early: the next one finds it.
    const later = async () => {
      await clock.advance(60_000);
      return (await look(service, clientRequestId)).status;
    };
    await expect.poll(later).toBe("absent");
  });

  it("a store that does not answer is 503 for submissions, which a lookup tells apart later", async () => {
    const service = await open();
    const client = await service.connect("owner");
    const body = startBody(client, "x");
    // The next process owns the work from now on.
    const next = await open();
    // In a cluster, one process of three has the connection, and gets further than to look for it.
    const fenced = () => service.call("owner", "POST", "/api/query/start", body);
    await expect.poll(fenced).toMatchObject({ status: 503, body: { code: "registry_unavailable" } });
    expect((await look(next, body.clientRequestId)).status).toBe("absent");
  });
});

interface KnownRequest {
  readonly turnId: string;
}

async function requestOf(app: AgentService["app"], clientRequestId: string): Promise<KnownRequest> {
  const requests = app.port(ports.records).collection<KnownRequest>({
    name: "client-requests",
    indexes: { bySweep: ["isOver", "sweepAt"], byAudience: ["audience", "endedAt"] },
  });
  return (await requests.get(requestKey("owner", clientRequestId)))!.value;
}
