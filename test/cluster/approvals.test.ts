import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEvents } from "../harness/answer-events.ts";
import { CLUSTER_OWNER, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import type { PorticoProcess } from "../harness/portico-process.ts";
import { type RawMcpServer, startRawMcpServer } from "../harness/raw-mcp-server.ts";
import { events } from "../harness/upstream-answers.ts";
import { waitingCall } from "../harness/waiting-call.ts";

const ROUNDS = process.env["PORTICO_LONG"] ? 25 : 2;
/** Turns of one round: of queries, and as many of the background. */
const TURNS = 4;
const PATIENT = { timeout: 60_000, interval: 100 };

const place = await clusterPlace({ MAIN_KEY: "sk-test" });

/** A call that waits. Its number is in its arguments. */
interface Waiting {
  readonly runId: string;
  readonly callId: string;
  readonly of: number;
}

describe.skipIf(!place)("turns that wait for a person, when the process that executed them is killed", () => {
  let cluster: RunningCluster;
  let upstream: FakeUpstream;
  let server: RawMcpServer;
  /** What the tool was called with. */
  const effects: unknown[] = [];
  beforeAll(async () => {
    const inputSchema = { type: "object", properties: { of: { type: "integer" } }, required: ["of"] };
    server = await startRawMcpServer([{ name: "act", inputSchema }], (params) => {
      effects.push((params["arguments"] as { readonly of: unknown }).of);
      return { content: [{ type: "text", text: "acted" }] };
    });
    upstream = await startFakeUpstream();
    let count = 0;
    upstream.answerAll(async (exchange) => {
      const hasResult = (await exchange.request.bytes()).toString().includes('"tool_use_id":');
      const call = { id: `call_${++count}`, name: "acts_act", input: { of: count } };
      await events(answerEvents("messages", hasResult ? { text: "done" } : { calls: [call] }))(exchange);
    });
    const main = { id: "main", type: "vendor", protocol: "messages", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    const config = {
      providers: [{ ...main, credential: { env: "MAIN_KEY" } }],
      mcpServers: { acts: { url: server.url } },
    };
    writeFileSync(join(place!.folder, "portico.config.json"), JSON.stringify(config), { mode: 0o600 });
    const tools = { "acts/act": "ask" };
    const actor = { name: "Actor", provider: "main", model: "echo-large", tools: ["acts/act"] };
    const heartbeat = { enabled: false, everyMs: 60_000, prompt: "Go" };
    await writeDocuments(place!, {
      "agents/actor/agent.json": { ...actor, heartbeat, toolPolicy: { tools, background: { tools } } },
    });
    cluster = await startCluster(place!, { count: 2 });
  }, 120_000);
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await upstream?.close();
    await server?.close();
  });

  const call = async (process: PorticoProcess, path: string, body?: object) => {
    const answer = await fetch(process.url("agent") + path, {
      headers: { "content-type": "application/json", "x-agent-service-token": CLUSTER_OWNER },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as any };
  };
  const runOf = async (process: PorticoProcess, runId: string) => (await call(process, `/api/runs/${runId}`)).body;
  const waitingIn = async (process: PorticoProcess): Promise<readonly Waiting[]> =>
    (await call(process, "/api/approvals?limit=200")).body.approvals.map(({ runId, callId, arguments: { of } }: any) => ({
      ...{ runId, callId, of },
    }));
  const isApproved = ({ of }: Waiting) => of % 3 > 0;
  /** Decides a call twice at once: one decision counts. */
  const decide = async (process: PorticoProcess, waiting: Waiting) => {
    const decision = isApproved(waiting) ? "approve" : "reject";
    const path = `/api/runs/${waiting.runId}/approvals/${waiting.callId}`;
    const answers = await Promise.all([1, 2].map(() => call(process, path, { decision })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  };

  it(
    `each decision at another process counts once, no call runs without an approval or twice, and what waited goes on (${ROUNDS} kills)`,
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const [dying, staying] = cluster.processes.slice(-2) as [PorticoProcess, PorticoProcess];
        const runIds = await Promise.all(
          Array.from({ length: TURNS }, async () => {
            const asked = await waitingCall(dying.url("agent"), CLUSTER_OWNER, "actor", "Go");
            asked.socket.disconnect();
            const { body } = await call(dying, "/api/schedules/actor/heartbeat/trigger", {});
            return [asked.runId, body.runId as string];
          }),
        );
        await expect.poll(() => waitingIn(staying), PATIENT).toHaveLength(2 * TURNS);
        const waiting = await waitingIn(staying);
        expect(waiting.map(({ runId }) => runId).toSorted()).toEqual(runIds.flat().toSorted());
        const [early, late] = [waiting.filter((_each, at) => at % 2 === 0), waiting.filter((_each, at) => at % 2 > 0)];
        const kill = async () => {
          await wait(Math.random() * 300);
          dying.signal("SIGKILL");
          await dying.exited;
        };
        await Promise.all([kill(), ...early.map((each) => decide(staying, each))]);
        const left = (await waitingIn(staying)).map(({ of }) => of).toSorted();
        expect(left).toEqual(late.map(({ of }) => of).toSorted());
        await Promise.all(late.map((each) => decide(staying, each)));

        for (const each of waiting) {
          await expect.poll(async () => (await runOf(staying, each.runId)).status, PATIENT).not.toBe("running");
          expect(await runOf(staying, each.runId)).not.toHaveProperty("approvals");
          const { receipts } = (await call(staying, `/api/runs/${each.runId}/receipt`)).body;
          const times = effects.filter((of) => of === each.of).length;
          expect(receipts).toHaveLength(1);
          const [{ outcome, tool_calls }] = receipts;
          // The killed process may have executed a turn that was decided early: before or after its call.
          if (early.includes(each) && outcome.status === "failed") expect(times).toBeLessThanOrEqual(isApproved(each) ? 1 : 0);
          else expect([outcome.status, tool_calls, times]).toMatchObject(endOf(each));
        }
        if (round + 1 < ROUNDS) await cluster.add();
      }
    },
    60_000 + ROUNDS * 60_000,
  );

  const endOf = (each: Waiting) => ["success", [{ is_error: !isApproved(each) }], isApproved(each) ? 1 : 0];
});
