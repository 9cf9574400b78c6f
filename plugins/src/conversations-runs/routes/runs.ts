import { auditActor, auditWriter, hasAtMost, jsonList, type ports } from "@portico/core";
import * as v from "valibot";
import { openFailedTurns } from "../background/failed-turns.ts";
import { agentErrors } from "../errors.ts";
import { RUN_ID_CHARACTERS, RUNS_LIMIT, TRACES_LIMIT, TRACES_LIMIT_MAXIMUM } from "../limits.ts";
import { readFilter, readLimit, readOffset, readPositive } from "../pagination.ts";
import { allReceipts, readReceiptPage, receiptStream } from "../runs/receipts.ts";
import { shownRun } from "../runs/run-outcome.ts";
import type { Run, Runs } from "../runs/runs.ts";
import { storedTrace } from "../trace-entry.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists runs, the newest first: an owner sees all, a member its own. */
export function listRuns({ runtime: { runs } }: ConversationServices): ConversationHandlers["runs"] {
  return ({ query, who }) => {
    const limit = readPositive("limit", query.limit, RUNS_LIMIT);
    const read = (["agent_id", "delegated_by", "parent_run_id"] as const).map(
      (name) => [name, readFilter(name, query[name])] as const,
    );
    if (who.role !== "owner" && who.userId === undefined) return { runs: [] };
    const given = [...read, ["user_id", who.role === "owner" ? undefined : who.userId] as const];
    const filters = Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
    return jsonList("runs", shownPages(runs.newest(filters, limit)));
  };
}

async function* shownPages(pages: AsyncIterable<readonly Run[]>) {
  for await (const page of pages) yield page.map(shownRun);
}

/** Shows one run. */
export function readRun({ runtime: { runs } }: ConversationServices): ConversationHandlers["run"] {
  return async ({ params, who }) => {
    const run = await visibleRun(runs, who, params.id);
    if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
    return shownRun(run);
  };
}

/** Renames a run, archives it, or takes it back. */
export function changeRun({ clock, runtime: { runs } }: ConversationServices): ConversationHandlers["changeRun"] {
  return async ({ params, body, who }) => {
    const at = new Date(clock.now()).toISOString();
    const run =
      (await visibleRun(runs, who, params.id)) &&
      (await runs.change(params.id, ({ archived_at, ...rest }) => {
        const isArchived = body.archived ?? archived_at !== undefined;
        return {
          ...rest,
          ...(isArchived && { archived_at: archived_at ?? at }),
          ...(body.title !== undefined && { title: body.title }),
          updatedAt: at,
        };
      }));
    if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
    return shownRun(run);
  };
}

/** Returns the present activity of a run. */
export function runtimeState({ runtime: { runs } }: ConversationServices): ConversationHandlers["runtimeState"] {
  return async ({ params, who }) => {
    if (!isRunId(params.id)) throw agentErrors.invalid_run_id();
    const run = await visibleRun(runs, who, params.id);
    if (!run) throw agentErrors.run_state_not_found(`Run runtime state not found: ${params.id}`);
    return { run_id: run.run_id, agent_id: run.agent_id, status: run.status };
  };
}

/** Lists the receipts of a run, or a page of them. */
export function readReceipts({ log, runtime: { runs } }: ConversationServices): ConversationHandlers["receipts"] {
  return async ({ params, query, who, signal }) => {
    assertUser(who, params.id);
    const page = query.offset === undefined && query.limit === undefined ? undefined : readReceiptPage(query);
    const run = await ownRun(runs, who, params.id);
    return page ? page(log, run.run_id, signal) : allReceipts(log, run.run_id, signal);
  };
}

/** Shows how a run's turns spent their time. A trace has no content, so the owner sees those of all users. */
export function readTrace({ log, runtime: { runs } }: ConversationServices): ConversationHandlers["trace"] {
  return async ({ params, query, who, signal }) => {
    const offset = readOffset("offset", query.offset, 0);
    const limit = readLimit(query.limit, TRACES_LIMIT, TRACES_LIMIT_MAXIMUM);
    const run = await visibleRun(runs, who, params.id);
    if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
    return readTraces(log, run.run_id, { offset, limit, signal });
  };
}

/** Throws for callers without a user, and for IDs in another form. */
export function assertUser(who: ports.Caller, runId: string): void {
  if (!isRunId(runId)) throw agentErrors.invalid_run_id();
  if (who.userId === undefined) throw agentErrors.user_unresolved();
}

/** A run of the caller's own. 4.6: receipts are the user's own, also from an owner's eyes. */
export async function ownRun(runs: Runs, who: ports.Caller, runId: string): Promise<Run> {
  const run = await visibleRun(runs, who, runId);
  if (!run || run.user_id !== who.userId) throw agentErrors.run_not_found(`Run not found: ${runId}`);
  return run;
}

/** Whether a text has the form of a run's id. */
export function isRunId(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text);
}

/** Undefined for a run that this caller may not see: to a member, others' runs are missing (open points 10). */
export async function visibleRun(runs: Runs, who: ports.Caller, runId: string): Promise<Run | undefined> {
  const run = isRunId(runId) && hasAtMost(RUN_ID_CHARACTERS, runId) ? (await runs.find(runId))?.value : undefined;
  return run && (who.role === "owner" || (who.userId !== undefined && run.user_id === who.userId)) ? run : undefined;
}

/** Runs a failed background run again, in a new run. A second call for the same run starts nothing, and answers with the same new run. */
export function runAgain(services: ConversationServices): ConversationHandlers["runAgain"] {
  const { records, turns, runtime } = services;
  const { runs } = runtime;
  const audit = auditWriter(services.audit, records);
  const failedTurns = openFailedTurns(records);
  return async ({ params: { id }, who, head }) => {
    if (who.role !== "owner") throw agentErrors.owner_required();
    const run = await visibleRun(runs, who, id);
    if (!run) throw agentErrors.run_not_found(`Run not found: ${id}`);
    if (run.again_run_id !== undefined) return { runId: run.again_run_id };
    const failed = run.status === "failed" ? await failedTurns.get(id) : undefined;
    if (!failed) throw agentErrors.run_not_repeatable();
    const { runId: _runId, ...turn } = failed.value;
    return audit.attempt({ action: "run.again", object: id, who: auditActor(who, head) }, async () => {
      const { runId } = await turns.start({ ...turn, againOf: id, key: `again:${id}` });
      await runs.change(id, (found) => ({ ...found, again_run_id: runId }));
      return { runId };
    });
  };
}

/** The part of a receipt that its trace is shown with. */
const traced = v.object({
  receipt_id: v.string(),
  started_at: v.string(),
  completed_at: v.string(),
  outcome: v.object({ status: v.picklist(["success", "partial", "failed"]) }),
  trace: v.optional(storedTrace),
});

/** The traces of a run's newest turns, in the order in which the turns ended; `offset` counts back from the newest. */
export async function readTraces(
  log: ports.EventLog,
  runId: string,
  { offset, limit, signal }: { readonly offset: number; readonly limit: number; readonly signal: AbortSignal },
) {
  const total = await log.count(receiptStream(runId));
  const last = total - offset;
  const first = Math.max(last - limit, 0) + 1;
  const turns: (Omit<v.InferOutput<typeof traced>, "outcome"> & { readonly outcome: "success" | "partial" | "failed" })[] = [];
  if (last >= first) {
    for await (const entry of log.read(receiptStream(runId), { from: first, limit: last - first + 1, signal })) {
      const found = entry.damaged ? undefined : v.safeParse(traced, entry.entry);
      if (found?.success) turns.push({ ...found.output, outcome: found.output.outcome.status });
    }
  }
  return { run_id: runId, turns, total, offset, limit, has_more: last >= first && first > 1 };
}
