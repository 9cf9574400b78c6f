import { type ports, retryWhileStoreAway, type StoreRetry } from "@portico/core";
import type { RunRecord } from "../runs/run-record.ts";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import type { RunRecords } from "../runs/run-records.ts";
import type { PendingInputs } from "../service/pending-inputs.ts";
import { replacedBy, type RunSlots, type SlotOrder, TURN, type Turn } from "../service/run-slots.ts";

interface Beginning {
  readonly context: ports.WorkContext;
  readonly runs: RunRecords;
  readonly slots: RunSlots;
  readonly pendingInputs: PendingInputs;
  readonly clock: ports.Clock;
  readonly storeRetry: StoreRetry;
  cancelRun(runId: string, reason: string): Promise<unknown>;
}

/**
 * Waits until a run may begin: for further triggers (`debounce`), and then for its turn (`concurrency`). Returns its record and its input. Throws
 * `workflow_busy` and `workflow_queue_full`, and the reason if the work is stopped or parked.
 */
export async function beginRun<I extends { readonly parameters: unknown; readonly hidden?: Hidden | undefined }>(
  given: Beginning,
  accepted: RunRecord,
  input: I,
): Promise<{ readonly record: RunRecord; readonly input: I }> {
  const { context, runs, pendingInputs, clock, storeRetry } = given;
  let record = accepted;
  let own = input;
  if (record.debounce) {
    await untilLastTrigger(given, record);
    const last = await retryWhileStoreAway(storeRetry, () => pendingInputs.last(record.runId));
    if (last) {
      own = { ...input, parameters: last.parameters, hidden: last.hidden };
      const { slot, fields } = last;
      if (slot && !record.slot) record = await retryWhileStoreAway(storeRetry, () => enter(given, record, slot));
      if (record.begunAt === undefined) record = await change((run) => ({ ...run, fields: fields && { parameters: fields } }));
    }
  }
  const turn = record.slot?.waits ? await context.waitFor<Turn>(TURN) : undefined;
  const begunAt = turn?.at ?? clock.now();
  if (record.begunAt === undefined) record = await change((run) => ({ ...run, begunAt }));
  return { record, input: own };

  async function change(next: (run: RunRecord) => RunRecord): Promise<RunRecord> {
    return (await retryWhileStoreAway(storeRetry, () => runs.change(record.runId, next))) ?? next(record);
  }
}

async function untilLastTrigger({ context, pendingInputs, storeRetry }: Beginning, record: RunRecord): Promise<void> {
  for (let look = 1; ; look++) {
    const left = await context.step(
      `debounce look #${look}`,
      async () => (await retryWhileStoreAway(storeRetry, () => pendingInputs.close(record))) ?? 0,
      { repeatable: true },
    );
    if (left === 0) return;
    await context.sleep(`debounce pause #${look}`, left);
  }
}

/** Takes a slot for a run that was accepted before. */
async function enter(
  { runs, slots, cancelRun }: Beginning,
  { runId, workflowId }: RunRecord,
  order: SlotOrder,
): Promise<RunRecord> {
  const found = (await runs.find(runId))?.value;
  if (!found) throw new Error("The run has no record");
  // The answer of an earlier attempt was lost.
  if (found.slot) return found;
  let taken = found;
  const replaced = await slots.enter({ ...order, runId, workflowId }, async ({ slot, write }) => {
    taken =
      (await runs.change(
        runId,
        (run) => ({ ...run, slot }),
        async () => [write],
      )) ?? taken;
  });
  for (const each of replaced) await cancelRun(each, replacedBy(runId));
  return taken;
}
