import { type ports, writeAgain } from "@portico/core";
import type { FieldValues, RunRecord } from "../runs/run-record.ts";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import { createTurns } from "./keyed-turns.ts";
import type { SlotOrder } from "./run-slots.ts";

/** The input of a run that waited for further triggers: that of the last one. */
export interface LastInput {
  readonly parameters: unknown;
  readonly hidden?: Hidden | undefined;
  /** The values of its parameters by which the run can be found. */
  readonly fields?: FieldValues | undefined;
  /** The limit under which it begins. */
  readonly slot?: SlotOrder | undefined;
}

/** The input of a run that still waits. */
export interface PendingInput {
  readonly runId: string;
  /** The hash of the definition with which the run was accepted. */
  readonly definition: string;
  /** The first trigger, and when the run begins: milliseconds since 1970. */
  readonly firstAt: number;
  readonly dueAt: number;
  readonly last: LastInput;
}

export type PendingInputs = ReturnType<typeof createPendingInputs>;

/**
 * The inputs of runs that wait for further triggers (`debounce`). One record for each workflow and key has the input of the last trigger. When the
 * run begins, the input is moved to a record of the run, in one commit: a later trigger starts another run. Functions throw RecordsUnavailable.
 */
export function createPendingInputs({
  records,
  engine,
  clock,
}: {
  readonly records: ports.Records;
  readonly engine: ports.Engine;
  readonly clock: ports.Clock;
}) {
  const pending = records.collection<PendingInput>({ name: "workflow-pending-inputs" });
  const moved = records.collection<LastInput>({ name: "workflow-moved-inputs" });
  return {
    /** Calls work for one id after another. */
    inTurn: createTurns(),
    write: (writes: readonly ports.Write[]): Promise<void> => records.batch(writes),
    find: (id: string): Promise<ports.Stored<PendingInput> | undefined> => pending.get(id),
    /** Whether the engine will execute the run. Throws EngineUnavailable. */
    async goesOn(runId: string): Promise<boolean> {
      const state = (await engine.status(runId))?.state;
      return state === "waiting" || state === "executing";
    },
    /** The writes of a trigger. A run that waited with another definition keeps its input, and begins. */
    put(id: string, next: PendingInput, found: ports.Stored<PendingInput> | undefined): readonly ports.Write[] {
      const write = pending.write.put(id, next, found?.version ?? "absent");
      const { runId, last } = found?.value ?? {};
      return runId === undefined || runId === next.runId ? [write] : [write, moved.write.put(runId, last!)];
    },
    /** How long the run still waits for further triggers, in milliseconds. Undefined once its input is moved. */
    close: ({ runId, debounce }: RunRecord): Promise<number | undefined> =>
      writeAgain(async () => {
        const found = debounce && (await pending.get(debounce.id));
        if (found?.value.runId !== runId) return undefined;
        const left = found.value.dueAt - clock.now();
        if (left > 0) return left;
        await records.batch([pending.write.remove(found.id, found.version), moved.write.put(runId, found.value.last)]);
        return undefined;
      }),
    /** The input of a run that waits no longer. */
    last: async (runId: string): Promise<LastInput | undefined> => (await moved.get(runId))?.value,
    /** The writes that end a run. */
    async leave({ runId, debounce }: RunRecord): Promise<readonly ports.Write[]> {
      if (!debounce) return [];
      const found = await pending.get(debounce.id);
      const own = found?.value.runId === runId ? [pending.write.remove(found.id, found.version)] : [];
      return [...own, moved.write.remove(runId)];
    },
  };
}
