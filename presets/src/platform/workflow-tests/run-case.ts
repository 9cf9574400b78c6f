import { setImmediate as settled, setTimeout as pause } from "node:timers/promises";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { memoryStore } from "@portico/adapters/stores/memory";
import { type Adapter, type App, createApp, ports, Secret } from "@portico/core";
import type { Definition } from "@portico/plugins/workflow-service/definitions";
import { workflowService } from "@portico/plugins/workflow-service";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import type { CallResult } from "@portico/core/client";
import type { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import type { TestedCase } from "@portico/plugins/workflow-service/definition-tests";
import { createGrants } from "@portico/plugins/workflow-service/grants";
import type { TestCase } from "./case-file.ts";
import { jsonDifference } from "../cases/json-difference.ts";
import { ofAttempt, ofNode, scriptedNodes } from "./scripted-nodes.ts";
import { silentTelemetry } from "../cases/silent-telemetry.ts";

type RunDetail = CallResult<typeof workflowServiceContract.run>;

/** The definition of a case, and how the case is executed. */
export interface CaseGiven {
  readonly definition: Definition;
  /** Name of the document of the definition. */
  readonly document: string;
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Real time of the case, in milliseconds; default: a minute. Its own timers pass at once. */
  readonly limitMs?: number;
  /** Aborts the case. */
  readonly signal?: AbortSignal;
  /** Threads for scripts; default: one for each processor. */
  readonly threads?: number;
  /** Whether unexpected failures are kept from standard error. Default: false. */
  readonly isSilent?: boolean;
}

const TOKEN = "the token of a test that listens nowhere";
const ORIGIN = "http://workflow.test";
const CASE_MS = 60_000;
/** Turns of the event loop after which a run that does nothing only waits for its timers. */
const TURNS = 10;
/** Nodes that work in a thread: time passes for them only when they have ended. */
const IN_THREADS: ReadonlySet<string> = new Set(["code", "transform"]);

/** Run one case with the real runner, in memory: without network, models and waiting. */
export async function runCase(test: TestCase, given: CaseGiven): Promise<TestedCase> {
  const { definition, document, types, secrets, limitMs = CASE_MS, signal, threads, isSilent } = given;
  const clock = createManualClock();
  const missed = new Set<string>();
  const app = await createApp({
    name: "workflow-test",
    adapters: [
      ...memoryStore().map(withoutChores),
      manualClock({ clock }),
      ...(isSilent ? [silentTelemetry()] : []),
      memoryDocuments({ id: "workflows", texts: { [document]: definition.text } }),
      ...scriptedNodes(types, test, (nodeId) => missed.add(nodeId), threads),
    ],
    plugins: [
      workflowService({
        token: new Secret(TOKEN),
        secrets: Object.fromEntries(Object.entries(secrets).map(([name, value]) => [name, new Secret(value)])),
        replacedKinds: ["agent", "attachment", "workflow"],
        // Links of gates and addresses of callbacks are in requests, which are sent to no one.
        publicUrl: ORIGIN,
      }),
    ],
  });
  try {
    const { id } = definition;
    const started = await call(app, `/api/workflow/webhook?id=${id}`, { body: test.parameters });
    if (started.status !== 200) return toResult(test, [`The run is refused: ${JSON.stringify(started.body)}`]);
    const { runId } = started.body as { runId: string };
    const ended = await toEnd(app, `/api/workflow/${id}/runs/${runId}`, { clock, test, workflowId: id, limitMs, signal });
    if (typeof ended === "string") return toResult(test, [ended]);
    const unanswered = [...missed].map((nodeId) => `nodes.${nodeId}: the case has no answer for this node`);
    return { ...toResult(test, [...unanswered, ...compared(test, ended)]), found: foundOf(ended) };
  } finally {
    // Closing may wait for timers.
    const closing = app.close();
    let isClosed = false;
    const closed = closing.finally(() => (isClosed = true));
    for (let left = clock.untilNext(); !isClosed && left !== undefined; left = clock.untilNext()) {
      await settled();
      if (!isClosed) await clock.advance(left);
    }
    await closed;
  }
}

/** The engine without recurring work, which would make each long wait a long series of timers. */
function withoutChores(adapter: Adapter): Adapter {
  const { spec } = adapter;
  if (spec.port !== ports.engine) return adapter;
  const open: typeof spec.open = async (...given) => {
    const engine = (await spec.open(...given)) as ports.Engine;
    return new Proxy(engine, {
      get(target, key) {
        if (key === "chore") return () => {};
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  return { ...adapter, spec: { ...spec, open } };
}

interface Passing {
  readonly clock: ReturnType<typeof createManualClock>;
  readonly test: TestCase;
  readonly workflowId: string;
  readonly limitMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The run when it has ended, or why it cannot end. */
async function toEnd(app: App, path: string, passing: Passing): Promise<RunDetail | string> {
  const { clock, test, workflowId, limitMs, signal } = passing;
  const giveUpAt = performance.now() + limitMs;
  const sent = new Set<string>();
  while (performance.now() < giveUpAt) {
    signal?.throwIfAborted();
    for (let turn = 0; turn < TURNS; turn++) await settled();
    const run = (await call(app, path)).body as RunDetail;
    if (run.status !== "running" && run.status !== "waiting_human") return run;
    const nodes = Object.values(run.nodeResults ?? {});
    if (nodes.some(({ type, status }) => status === "running" && IN_THREADS.has(type))) {
      await pause(1);
      continue;
    }
    if (run.humanGate) {
      const { nodeId, expiresAt } = run.humanGate;
      const decision = ofNode(test.gates, nodeId);
      if (decision === undefined) return `gates.${nodeId}: the run waits here, and the case has no decision`;
      if (decision !== "timeout") {
        const grant = await createGrants(portsOf(app)).issue({ workflowId });
        const answer = await call(app, `${path}/gate`, { body: { ...decision, nodeId }, grant: grant.executionGrantId });
        if (answer.status !== 200) return `gates.${nodeId}: the decision is refused: ${JSON.stringify(answer.body)}`;
        continue;
      }
      if (expiresAt === undefined) return `gates.${nodeId}: this gate has no timeout`;
    }
    const called = await callBack(app, run, test, sent);
    if (typeof called === "string") return called;
    if (called) continue;
    const left = clock.untilNext();
    if (left === undefined) return "The run does not end";
    await clock.advance(left);
  }
  return `The run does not end within ${limitMs / 1000} s`;
}

/** Sends the events of the callbacks that wait. Returns whether one was sent, or why one is refused. */
async function callBack(
  app: App,
  { runId, nodeResults = {} }: RunDetail,
  { callbacks }: TestCase,
  sent: Set<string>,
): Promise<boolean | string> {
  let hasSent = false;
  for (const [nodeId, { attempts: attempt, waitsUntil }] of Object.entries(nodeResults)) {
    if (waitsUntil === undefined || sent.has(`${nodeId} ${attempt}`)) continue;
    // Without an event, its request fails.
    const given = ofAttempt(ofNode(callbacks, nodeId) ?? "timeout", attempt);
    if (given === "timeout") continue;
    const expiresAt = Date.parse(waitsUntil);
    const token = await app.port(workflowRuntime).callbackTokens.issue({ runId, nodeId, attempt, expiresAt });
    sent.add(`${nodeId} ${attempt}`);
    const answer = await call(app, `/callback/${token}`, { body: given.event });
    if (answer.status !== 200) return `callbacks.${nodeId}: the event is refused: ${JSON.stringify(answer.body)}`;
    hasSent = true;
  }
  return hasSent;
}

function portsOf(app: App) {
  return { signing: app.port(ports.signing), clock: app.port(ports.clock), ids: app.port(ports.ids) };
}

async function call(app: App, path: string, { body, grant }: { readonly body?: unknown; readonly grant?: string } = {}) {
  const answer = await app.surface("workflow").fetch(
    new Request(`${ORIGIN}${path}`, {
      method: body !== undefined ? "POST" : "GET",
      headers: {
        "x-workflow-service-token": TOKEN,
        "content-type": "application/json",
        ...(grant !== undefined && { "x-execution-grant": grant }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
  return { status: answer.status, body: (await answer.json()) as unknown };
}

function compared({ expect }: TestCase, { status, finalOutputs, error, nodeResults = {} }: RunDetail): readonly string[] {
  const wanted = Object.entries(expect.error ?? {});
  return [
    ...jsonDifference("status", expect.status, status),
    ...(expect.status !== status && error ? [`error: ${error.code}${at(error.nodeId)}: ${error.message}`] : []),
    ...wanted.flatMap(([key, value]) => jsonDifference(`error.${key}`, value, error?.[key as keyof typeof error])),
    ...("outputs" in expect ? jsonDifference("outputs", expect.outputs, finalOutputs) : []),
    ...Object.entries(expect.nodes).flatMap(([id, each]) => jsonDifference(`nodes.${id}`, each, nodeResults[id]?.status)),
  ];
}

function at(nodeId: string | undefined): string {
  return nodeId === undefined ? "" : ` at ${nodeId}`;
}

function foundOf({ status, finalOutputs, error, nodeResults = {} }: RunDetail): TestedCase["found"] {
  const nodes = Object.fromEntries(Object.entries(nodeResults).map(([id, node]) => [id, node.status]));
  return { status, ...(finalOutputs !== undefined && { outputs: finalOutputs }), ...(error && { error }), nodes };
}

function toResult({ name }: TestCase, differences: readonly string[]): TestedCase {
  return { name, isOk: differences.length === 0, differences };
}
