import { setTimeout as sleep } from "node:timers/promises";
import { CallFailed } from "@portico/core/client";
import { isTerminal } from "@portico/plugins/workflow-service/contract";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { printableJson } from "../terminal.ts";
import { runLines } from "./run-lines.ts";
import type { RunDetail, RunEvent, RunName, RunningService } from "./running-service.ts";

/** Waits between reads of the history. They grow while nothing happens. */
const PAUSE_MS = { least: 500, most: 8000 } as const;
/** A restarted service is reachable again within a minute. */
const AWAY = { pauseMs: 2000, attempts: 30 } as const;

interface Following {
  /** Called again after each failure: a restarted service may have another address. */
  find(): Promise<RunningService>;
  readonly run: RunName;
  readonly signal: AbortSignal;
  /** Called when the service cannot be reached and is waited for. */
  onAway(): void;
}

/**
 * The events of a run up to its `workflow:complete`, each once. Uses live events as long as the service sends them, otherwise the
 * history. Another follower takes over the live events (specification 6.1); both continue. The history has only the
 * ends of nodes, and the starts of nodes that run or wait. Throws CommandFailed, and the signal's reason.
 */
async function* followRun(given: Following): AsyncGenerator<RunEvent, void> {
  const { find, run, signal } = given;
  const told = new Set<string>();
  let { workflowId } = run;
  for await (const event of liveEvents(await find(), run.runId, signal)) {
    const isEnd = event.event === "workflow:complete";
    if (isEnd || event.event === "workflow:started") workflowId = event.data.workflowId;
    // The run had ended: its earlier events are in its history.
    if (told.size === 0 && event.event !== "workflow:started") break;
    told.add(keyOf(event));
    yield event;
    if (isEnd) return;
  }
  yield* remembered({ ...given, run: { ...run, workflowId } }, told);
}

/** The live events of a run. Empty if the service sends none for this run. Ends when the stream ends or breaks. */
async function* liveEvents(service: RunningService, runId: string, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
  const events = await service.events(runId, signal);
  if (!events) return;
  try {
    yield* events;
  } catch {
    signal.throwIfAborted();
  }
}

async function* remembered(given: Following, told: Set<string>): AsyncGenerator<RunEvent, void> {
  const { signal } = given;
  let { run } = given;
  let pause: number = PAUSE_MS.least;
  for (;;) {
    const detail = await read({ ...given, run });
    run = detail;
    const news = eventsOf(detail).filter((event) => !told.has(keyOf(event)));
    for (const event of news) {
      told.add(keyOf(event));
      yield event;
    }
    if (isTerminal(detail.status)) return;
    pause = news.length > 0 ? PAUSE_MS.least : Math.min(pause * 2, PAUSE_MS.most);
    await sleep(pause, undefined, { signal });
  }
}

async function read({ find, run, signal, onAway }: Following): Promise<RunDetail> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await (await find()).run(run, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isAway(error) || attempt >= AWAY.attempts) throw error;
      if (attempt === 1) onAway();
      await sleep(AWAY.pauseMs, undefined, { signal });
    }
  }
}

/** The service cannot be reached, or cannot answer now. */
function isAway(error: unknown): boolean {
  if (!(error instanceof CommandFailed)) return false;
  return error.exitCode === EXIT.unavailable || (CallFailed.is(error.cause) && error.cause.status >= 500);
}

/** A run's history, converted to events. */
function eventsOf({ runId, workflowId, status, nodeResults = {}, humanGate, error, finalOutputs }: RunDetail): RunEvent[] {
  const events = Object.entries(nodeResults).flatMap(([nodeId, result]): RunEvent[] => {
    const { type, name, inputs, outputs, durationMs = 0 } = result;
    switch (result.status) {
      case "running":
      case "waiting":
        return [{ event: "workflow:node_start", data: { runId, nodeId, type, ...(name !== undefined && { name }) } }];
      case "completed":
        return [{ event: "workflow:node_complete", data: { runId, nodeId, inputs, outputs, durationMs } }];
      case "failed":
        return result.error ? [{ event: "workflow:node_error", data: { runId, nodeId, error: result.error } }] : [];
      default:
        return [];
    }
  });
  if (humanGate) events.push({ event: "workflow:human_gate", data: { runId, ...humanGate } });
  if (!isTerminal(status)) return events;
  if (error) {
    const { code, message, nodeId } = error;
    events.push({ event: "workflow:error", data: { runId, error: { code, message }, ...(nodeId !== undefined && { nodeId }) } });
  }
  const outputs = finalOutputs !== undefined && { finalOutputs };
  events.push({ event: "workflow:complete", data: { runId, workflowId, status, ...outputs } });
  return events;
}

/** A node starts once, ends once, and opens its gate once. */
function keyOf({ event, data }: RunEvent): string {
  return `${event} ${"nodeId" in data ? data.nodeId : ""}`;
}

interface FollowedRun {
  find(): Promise<RunningService>;
  readonly run: RunName;
  /** Prints one JSON object per event, instead of lines for a person. */
  readonly asJson: boolean;
  /** Flags with which another command reaches the same service. */
  readonly more: readonly string[];
}

/**
 * Print the events of a run until it ends. Ctrl-C or a closed output stops only the printing, not the run. Returns the exit code: 0 if the run
 * completed, 2 if it ended otherwise, 130 if following was stopped. Throws CommandFailed.
 */
export async function followToEnd({ find, run, asJson, more }: FollowedRun): Promise<number> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once("SIGINT", leave);
  process.stdout.once("error", leave);
  const onAway = () => console.error("The workflow service cannot be reached. Waiting for it…");
  let hasCompleted = false;
  try {
    for await (const event of followRun({ find, run, signal: leaving.signal, onAway })) {
      const lines = asJson ? [printableJson({ event: event.event, data: event.data })] : runLines(event, more);
      for (const line of lines) console.log(line);
      if (event.event === "workflow:complete") hasCompleted = event.data.status === "completed";
    }
    return hasCompleted ? EXIT.ok : EXIT.notCompleted;
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
    console.error(`The run continues. To follow it again: ${["portico workflow follow", run.runId, ...more].join(" ")}`);
    return EXIT.stopped;
  } finally {
    process.off("SIGINT", leave);
    process.stdout.off("error", leave);
  }
}
