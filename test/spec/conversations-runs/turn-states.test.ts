import { cpSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { functionTools } from "@portico/adapters/tools/functions";
import { definePlugin, ports } from "@portico/core";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { toolOf } from "../../harness/looped-agents.ts";
import { isClusterRun } from "../../harness/members.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const RETRY_MS = 60_000;
const LISTENER = "listener";

/** How often the tool took effect. */
let effects: number;
/** Attempts for which the model's provider is still away. */
let away: number;
const erase = {
  ...toolOf("erase", { riskLevel: "critical", requiresConfirmation: true }),
  run: async () => (effects++, "erased"),
};
const look = { ...toolOf("look"), run: async () => (effects++, "looked") };
const agent = { name: "Looper", tools: ["erase", "look"], toolPolicy: { background: { tools: { erase: "ask" } } } };

/** Work that answers the signal `ended`, over restarts. */
const waiter = definePlugin({
  name: "waiter",
  config: v.strictObject({}),
  needs: { engine: ports.engine },
  contract: {},
  setup({ engine }, _config, scope) {
    engine.define("wait", (context) => context.waitFor("ended"), { onInterrupted: "resume" });
    scope.onReady(() => engine.ready());
    return {};
  },
});

let folder: ReturnType<typeof temporaryFolder>;
let services: AgentService[];
let clock: ManualClock;
beforeEach(() => {
  folder = temporaryFolder();
  clock = createManualClock();
  services = [];
  [effects, away] = [0, 0];
});
afterEach(async () => {
  await Promise.all(services.map((service) => service.close()));
  folder.remove();
});

const start = async (dataDir: string): Promise<AgentService> => {
  const service = await startAgentService({
    agents: new Map<string, object>([
      ["looper", agent],
      ["scripted", { name: "Scripted", engine: "scripted" }],
    ]),
    adapters: [functionTools({ tools: [erase, look] })],
    plugins: [waiter({})],
    background: { backgroundRetries: [`${RETRY_MS}ms`] },
    ...{ clock, dataDir },
  });
  service.engine.otherwise(async (_turn, { say }) => {
    if (away-- > 0) throw new ports.ModelUnreachable("The provider is away");
    await say({ type: "text", delta: "Done" });
  });
  services.push(service);
  return service;
};

/** The data of a process after each of its commits, and what had happened by then. */
interface Killed {
  readonly dataDir: string;
  readonly effects: number;
  readonly away: number;
}

/** Copies the store after each commit of `act`: what the next process finds if this one is killed before its next commit. */
async function afterEachCommit(service: AgentService, act: () => Promise<void>): Promise<readonly Killed[]> {
  const killed: Killed[] = [];
  const prototype = Object.getPrototypeOf(new DatabaseSync(":memory:").prepare("SELECT 1")) as StatementSync;
  const { run } = prototype;
  prototype.run = function (this: StatementSync, ...given: Parameters<typeof run>) {
    const result = run.apply(this, given);
    if (this.sourceSQL === "COMMIT") {
      const dataDir = `${folder.path}/killed-${killed.length}`;
      cpSync(service.dataDir, dataDir, { recursive: true });
      killed.push({ dataDir, effects, away });
    }
    return result;
  } as typeof run;
  try {
    await act();
  } finally {
    prototype.run = run;
  }
  return killed;
}

const call = async (service: AgentService, method: string, path: string, body?: object) =>
  (await service.call("owner", method, path, body)).body;
const runsOf = async (service: AgentService): Promise<readonly any[]> => (await call(service, "GET", "/api/runs")).runs;
const receiptsOf = async (service: AgentService, runId: string): Promise<readonly any[]> =>
  (await call(service, "GET", `/api/runs/${runId}/receipt`)).receipts;
/** Passes time and approves what waits, until every run is at rest. */
const untilAtRest = (service: AgentService) =>
  expect
    .poll(
      async () => {
        await clock.advance(RETRY_MS / 4);
        for (const { runId, callId } of (await call(service, "GET", "/api/approvals")).approvals)
          await service.call("owner", "POST", `/api/runs/${runId}/approvals/${callId}`, { decision: "approve" });
        const runs = await runsOf(service);
        return runs.length > 0 && runs.every(({ status, retry_at }) => status !== "running" && retry_at === undefined);
      },
      { interval: 10 },
    )
    .toBe(true);
const countOf = async (service: AgentService, name: string) =>
  (await service.app.port(ports.records).collection({ name }).query({ limit: 1000 })).items.length;

/** Nothing is left of turns that have ended: no wait, no open turn, no open approval. */
const isAllClosed = async (service: AgentService) => {
  await expect.poll(() => countOf(service, "background-turns")).toBe(0);
  expect(await call(service, "GET", "/api/approvals")).toEqual({ approvals: [] });
  const waits = service.app.port(ports.records).collection({
    name: "turn-waits",
    indexes: { bySession: ["sessionId"], byDue: ["isDue", "dueAt"] },
  });
  expect((await waits.query({ limit: 10 })).items).toEqual([]);
};

interface Kind {
  readonly name: string;
  /** Hands the turn in. May be repeated, as its client or its event does after a kill. */
  begin(service: AgentService): Promise<void>;
  /** What only this kind promises of a turn that has ended. */
  check(service: AgentService, run: any): Promise<void>;
  /** Attempts that fail because the model's provider is away. */
  readonly away?: number;
}

const query = (prompt: string): Kind => ({
  name: `a query that is told "${prompt}"`,
  async begin(service) {
    const client = await service.connect("owner");
    const ids = { clientRequestId: "request-0123456789", userMessageId: "message-0123456789" };
    expect((await client.start(prompt, ids, { agentId: "looper" })).status).toBe(202);
  },
  async check(service, run) {
    const { results } = await call(service, "POST", "/api/query/client-requests/lookup", {
      agentId: "looper",
      requests: [{ clientRequestId: "request-0123456789" }],
    });
    expect(results).toMatchObject([{ status: "committed" }]);
    const { messages } = await call(service, "GET", `/api/conversations/${run.conversation_id}/messages`);
    expect(messages.filter(({ role }: any) => role === "user")).toHaveLength(1);
    expect(run.messageCount).toBe(messages.length);
  },
});
const background = (prompt: string, more: { readonly isTold?: boolean; readonly away?: number } = {}): Kind => ({
  name: `a background turn that is told "${prompt}"${more.isTold ? ", for whose end work waits" : ""}${more.away ? ", whose provider is away" : ""}`,
  away: more.away ?? 0,
  async begin(service) {
    await service.app.port(ports.backgroundTurns).start({
      ...{ agentId: more.away ? "scripted" : "looper", userId: "owner", prompt, key: "key" },
      origin: { origin: "webhook", displayName: "push" },
      ...(more.isTold && { tell: { workId: LISTENER, signal: "ended" } }),
    });
  },
  async check(service, { run_id: runId, status }) {
    if (more.isTold) {
      const ended = async () => (await service.app.port(ports.engine).status(LISTENER))?.output;
      await expect.poll(ended).toMatchObject({ runId, status });
    }
    expect(await service.app.port(ports.backgroundTurns).find("key")).toMatchObject({ runId, isOpen: false, end: { status } });
    const transcript = `turns/turn_${runId.slice("run_".length)}`;
    // Stores that were away are asked again after a pause.
    const isRemoved = async () => (await clock.advance(RETRY_MS), await service.app.port(ports.log).count(transcript)) === 0;
    await expect.poll(isRemoved).toBe(true);
  },
});

// Processes of a cluster share stores that cannot be copied between two commits.
describe.skipIf(isClusterRun)("a process that is killed between any two commits", () => {
  it.each([
    query("use look"),
    query("use erase"),
    background("use look"),
    background("use erase"),
    background("use look", { isTold: true }),
    background("go", { away: 1 }),
  ])(
    "of $name: the turn runs once or is closed once, its tool takes effect at most once, and nothing stays open",
    async ({ begin, check, away: awayFor = 0 }) => {
      const first = await start(`${folder.path}/first`);
      away = awayFor;
      await first.app.port(ports.engine).start("wait", LISTENER, {});
      const killed = await afterEachCommit(first, async () => {
        await begin(first);
        await untilAtRest(first);
        await check(first, (await runsOf(first))[0]);
      });
      await first.close();
      const ends: string[] = [];
      for (const each of killed) {
        [effects, away] = [0, each.away];
        const next = await start(each.dataDir);
        await begin(next);
        await untilAtRest(next);
        const [run, ...others] = await runsOf(next);
        expect(others).toEqual([]);
        await check(next, run);
        await isAllClosed(next);
        const receipts = await receiptsOf(next, run.run_id);
        expect(receipts.length).toBeLessThanOrEqual(1 + awayFor);
        const isWhole = receipts.at(-1).outcome.status === "success";
        expect(each.effects + effects).toBeLessThanOrEqual(1);
        if (isWhole) expect(awayFor > 0 || each.effects + effects === 1).toBe(true);
        else expect(run).toMatchObject({ status: "failed", failure_reason: "process_restart" });
        ends.push(`${each.effects}${effects}${receipts.length}${isWhole ? "whole" : "closed"}`);
        await next.close();
      }
      // In this order: it had not begun, it executed, its end was stored.
      expect(ends.join(" ")).toMatch(/whole.*closed.*whole/);
    },
  );
});

/** The two ways in which turns write: batches of records, and entries of the log with records. Calls `act` in place of each write. */
function onWrites(service: AgentService, act: (write: () => Promise<any>, streams: readonly string[]) => Promise<any>): void {
  const [records, log] = [service.app.port(ports.records), service.app.port(ports.log)];
  const [batch, appendAll] = [records.batch.bind(records), log.appendAll.bind(log)];
  vi.spyOn(records, "batch").mockImplementation((writes) => act(() => batch(writes), []));
  vi.spyOn(log, "appendAll").mockImplementation((entries, more) =>
    act(
      () => appendAll(entries, more),
      entries.map(({ stream }) => stream),
    ),
  );
}

describe.each([query("use look"), query("use erase"), background("use look"), background("use erase")])("$name", (kind) => {
  it("takes effect once if the store takes any one of its commits, and the answer is lost", async () => {
    for (let lost = 1, isLost = true; isLost; lost++) {
      const service = await start(`${folder.path}/${lost}`);
      isLost = false;
      let writes = 0;
      effects = 0;
      onWrites(service, async (write) => {
        const answer = await write();
        if (++writes !== lost) return answer;
        isLost = true;
        throw new ports.RecordsUnavailable("The answer was lost");
      });
      await kind.begin(service).catch(() => kind.begin(service));
      await untilAtRest(service);
      const [run] = await runsOf(service);
      expect([lost, run.failure, effects]).toEqual([lost, undefined, 1]);
      expect((await receiptsOf(service, run.run_id)).map(({ outcome }) => outcome.status)).toEqual(["success"]);
      await kind.check(service, run);
      await isAllClosed(service);
      await service.close();
    }
  });

  it("is failed and closed if no store accepts its end", async () => {
    const service = await start(`${folder.path}/1`);
    let refused = 0;
    onWrites(service, (write, streams) => {
      const isEnd = streams.some((stream) => stream.startsWith("receipts/"));
      return isEnd && refused++ === 0 ? Promise.reject(new ports.LogEntryTooLarge("The entry is too large")) : write();
    });
    await kind.begin(service);
    await untilAtRest(service);
    const [run] = await runsOf(service);
    expect(run).toMatchObject({ status: "failed", failure_reason: "error", failure: { code: "internal_error" } });
    const receipts = await receiptsOf(service, run.run_id);
    expect(receipts).toMatchObject([{ output: "", tool_calls: [], outcome: { status: "failed" } }]);
    await kind.check(service, run);
    await isAllClosed(service);
  });

  it("is failed and closed if its beginning cannot be stored for a reason that does not pass", async () => {
    const service = await start(`${folder.path}/1`);
    let refused = 0;
    onWrites(service, (write) => (refused++ === 0 ? Promise.reject(new TypeError("Not to be stored")) : write()));
    await kind.begin(service);
    await untilAtRest(service);
    const [run] = await runsOf(service);
    expect(run).toMatchObject({ status: "failed", failure_reason: "error", failure: { code: "internal_error" } });
    expect([effects, (await receiptsOf(service, run.run_id)).length]).toEqual([0, 1]);
    await kind.check(service, run);
    await isAllClosed(service);
  });
});
