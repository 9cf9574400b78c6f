import { setTimeout as sleep } from "node:timers/promises";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { CLUSTER_OWNER, CLUSTER_WORKFLOW } from "../../harness/cluster.ts";
import { ONCE } from "../every-node.ts";
import { callOnce, callUntilAnswered, jsonBody } from "./call.ts";
import { type Load, OpenItems, repeat, Report } from "./load.ts";
import type { Scene } from "./stage.ts";

/** A run that the service has acknowledged. */
interface Accepted {
  readonly n: number;
  /** The decision of its gate, and whether its client wants to stop it. */
  readonly decision: "approve" | "reject";
  readonly isCancelled: boolean;
  /** The events that its client received, from the history and live. */
  status?: string;
  told?: string | undefined;
}

const CLIENTS = 8;
const headers = { "x-workflow-service-token": CLUSTER_WORKFLOW };

/** Programs start runs, half of them with a grant and a key, follow them, and decide their gates. */
export async function workflowLoad({ cluster, effects }: Scene): Promise<Load> {
  const url = cluster.url("workflow");
  const issue = jsonBody({ "x-agent-service-token": CLUSTER_OWNER }, "POST", { workflowId: "main", ttlMs: 24 * 3_600_000 });
  const issueGrant = async (): Promise<string> =>
    (await callUntilAnswered(`${cluster.url("agent")}/api/execution-grants`, issue)).body.executionGrantId;
  const granted = { ...headers, "x-execution-grant": await issueGrant() };
  const accepted = new Map<string, Accepted>();
  /** Triggers without an answer: their runs may exist. */
  const unanswered = new Set<number>();
  const wrong: string[] = [];
  const open = new OpenItems();
  let next = 0;

  const pathOf = (runId: string) => `${url}/api/workflow/main/runs/${runId}`;
  const detailOf = async (runId: string) => {
    const { status, body } = await callUntilAnswered(pathOf(runId), { headers });
    if (status !== 200) wrong.push(`${runId} was accepted, and its detail has ${status}`);
    return status === 200 ? body : { status: "not found" };
  };

  async function start(n: number): Promise<string | undefined> {
    if (n % 2 === 0) {
      // One grant starts one run.
      const input = { executionGrantId: await issueGrant(), idempotencyKey: `key-${n}`, workflowId: "main", parameters: { n } };
      const ask = () => callUntilAnswered(`${url}/api/workflow/run`, jsonBody(headers, "POST", input));
      const [first, second] = [await ask(), n % 6 === 0 ? await ask() : undefined];
      if (first.status !== 200) wrong.push(`the start of ${n} has ${first.status}: ${first.bytes.toString()}`);
      if (second && (second.body.runId !== first.body.runId || second.body.duplicate !== true))
        wrong.push(`the repeated start of ${n} has another run than the first one`);
      return first.body.runId;
    }
    const answer = await callOnce(`${url}/api/workflow/webhook?id=main`, jsonBody(headers, "POST", { n }));
    if (answer?.status === 200) return answer.body.runId;
    if (answer && answer.status < 500) wrong.push(`the trigger of ${n} has ${answer.status}: ${answer.bytes.toString()}`);
    unanswered.add(n);
    return undefined;
  }

  /** Decides the gate of a run that waits. The same decision may be given again if its answer was lost. */
  async function decide(runId: string, decision: Accepted["decision"], mayBeClosed: boolean): Promise<void> {
    for (let isRepeated = false; ; isRepeated = true) {
      const answer = await callOnce(`${pathOf(runId)}/gate`, jsonBody(granted, "POST", { decision }));
      if (answer?.status === 200) return;
      if (answer?.status === 409 && (isRepeated || mayBeClosed)) return;
      if (answer && answer.status < 500)
        return void wrong.push(`the decision of ${runId} has ${answer.status}: ${answer.bytes.toString()}`);
      await sleep(200);
    }
  }

  async function live(runId: string, run: Accepted): Promise<void> {
    const following = run.n % 3 === 0 ? follow(url, runId, wrong).catch(() => undefined) : undefined;
    if (run.isCancelled) {
      await sleep(Math.random() * 2000);
      const { status, bytes } = await callUntilAnswered(`${pathOf(runId)}/cancel`, jsonBody(granted, "POST", {}));
      if (status !== 200 && status !== 409) wrong.push(`the cancellation of ${runId} has ${status}: ${bytes.toString()}`);
    }
    for (let isDecided = false; ;) {
      const { status } = await detailOf(runId);
      if (status === "waiting_human" && !isDecided) {
        // A cancelled run may show its gate until it ends.
        await decide(runId, run.decision, run.isCancelled);
        isDecided = true;
      } else if (status !== "running" && status !== "waiting_human") {
        run.status = status;
        break;
      }
      await sleep(300 + Math.random() * 300);
    }
    run.told = await following;
  }

  const listed = async (): Promise<readonly any[]> =>
    (await callUntilAnswered(`${url}/api/workflow/main/runs`, { headers })).body.runs;

  return {
    name: "workflows",
    open: () => open.list(),
    async run(signal) {
      await repeat(CLIENTS, signal, async () => {
        const n = ++next;
        const runId = await open.during(`start of ${n}`, () => start(n));
        if (runId === undefined) return;
        const run: Accepted = { n, decision: n % 7 === 3 ? "reject" : "approve", isCancelled: n % 11 === 5 };
        accepted.set(runId, run);
        await open.during(`${runId} (${n})`, () => live(runId, run));
      });
      // Runs whose trigger had no answer. An operator decides their gates.
      for (;;) {
        const runs = await listed();
        for (const { runId, status } of runs) if (status === "waiting_human") await decide(runId, "approve", true);
        if (runs.every(({ status }) => status !== "running" && status !== "waiting_human")) return;
        await sleep(500);
      }
    },
    async verify() {
      const report = new Report();
      report.wrong.push(...wrong);
      const runs = await listed();
      const ids = new Set(runs.map(({ runId }) => runId));
      for (const runId of accepted.keys()) report.expect(ids.has(runId), `${runId} was accepted, and is not listed`);
      const numbers: number[] = [];
      for (const { runId } of runs) {
        const detail = await detailOf(runId);
        report.count(detail.status);
        const run = accepted.get(runId);
        const is = (holds: boolean, otherwise: string) => report.expect(holds, `${runId} (${detail.status}): ${otherwise}`);
        const n = run?.n ?? detail.nodeResults.start?.output ?? detail.nodeResults.start?.outputs;
        if (typeof n === "number") numbers.push(n);
        is(run !== undefined || n === undefined || unanswered.has(n), `it was not started by a client`);
        is(run?.status === undefined || run.status === detail.status, `its client was told ${run?.status}`);
        is(run?.told === undefined || run.told === detail.status, `its events said ${run?.told}`);
        const done = {
          http: effects.times(`call ${runId}`),
          tool: effects.times(`tool ${runId}`),
          agent: effects.times(`turn ${runId}`),
        };
        for (const [node, kind] of Object.entries(ONCE)) {
          const result = detail.nodeResults[node]?.status;
          is(done[kind] <= 1, `${node} took effect ${done[kind]} times`);
          is(result !== "completed" || done[kind] === 1, `${node} is completed, and took effect ${done[kind]} times`);
          is(result !== "skipped" || done[kind] === 0, `${node} was skipped, and took effect`);
        }
        const going = Object.entries<any>(detail.nodeResults).filter(
          ([, { status }]) => status === "running" || status === "waiting",
        );
        is(going.length === 0, `nodes are still at work: ${going.map(([id]) => id).join(" ")}`);
        switch (detail.status) {
          case "completed":
            is(run?.decision !== "reject", "its gate was rejected");
            is(JSON.stringify(detail.finalOutputs.each) === "[200,200,200]" && detail.finalOutputs.sub === 200, "its outputs");
            is(effects.keys(`each ${n}`) === 3 && effects.keys(`child ${n}`) === 1, "its keyed effects");
            break;
          case "failed":
            // A process that was frozen finds its connections to tools closed. It does not repeat the call.
            is(
              (run?.decision === "reject" && detail.error.code === "rejected") || detail.error.code === "tools_unavailable",
              `${detail.error.code}: ${detail.error.message}`,
            );
            break;
          case "interrupted":
            is(
              detail.error.code === "process_restart" && detail.error.nodeId in ONCE,
              `${detail.error.code} at ${detail.error.nodeId}`,
            );
            break;
          case "cancelled":
            is(run?.isCancelled === true, "its client did not cancel it");
            break;
          default:
            is(false, "it has not ended");
        }
      }
      report.expect(new Set(numbers).size === numbers.length, "a start has two runs");
      if (unanswered.size > 0) report.counts["unanswered"] = unanswered.size;
      return report;
    },
  };
}

/** Follows the events of a run. Resolves with its final status; undefined if the stream ended before, which is allowed. */
async function follow(url: string, runId: string, wrong: string[]): Promise<string | undefined> {
  const answer = await fetch(`${url}/api/workflow/events?runId=${runId}`, { headers });
  if (answer.status !== 200 || !answer.body) return undefined;
  const seen: string[] = [];
  const started = new Set<string>();
  for await (const { event, data } of answer.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())) {
    const { nodeId, status } = JSON.parse(data) as { readonly nodeId?: string; readonly status?: string };
    const name = nodeId === undefined ? `${event}` : `${event} ${nodeId}`;
    const isLate =
      seen.length === 0 ? event !== "workflow:started" && event !== "workflow:complete" : event === "workflow:started";
    const isBefore = nodeId !== undefined && event !== "workflow:node_start" && !started.has(nodeId);
    const isRepeated = event !== "workflow:node_start" && seen.includes(name);
    seen.push(name);
    if (event === "workflow:node_start") started.add(nodeId!);
    if (isLate || isBefore || isRepeated) wrong.push(`the events of ${runId} are out of order: ${seen.join(", ")}`);
    if (event === "workflow:complete") return status;
  }
  return undefined;
}
