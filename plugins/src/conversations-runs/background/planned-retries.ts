import { type ports, retryWhileStoreAway } from "@portico/core";
import type { TurnEnd } from "../turns/turn-end.ts";
import type { createBackgroundRecords } from "./background-records.ts";
import { type AcceptedTurn, attemptOf, type Retry, workIdOf } from "./background-turn.ts";

export type PlannedRetries = ReturnType<typeof createPlannedRetries>;

/** A planned attempt as the engine keeps it. The turn itself is in the records, where it is removed with its user. */
interface PlannedAttempt {
  readonly runId: string;
  readonly attempt: number;
  readonly delayMs: number;
}

const KIND = "background-retry";
/** Between looks at an attempt before this one whose end is not stored yet. */
const LOOK_MS = 1000;

/**
 * Attempts of turns whose model's provider was away. Each waits as work of the engine that sleeps: it outlives restarts, and takes no slot of its * agent. When its time has come, the turn is accepted again, with another id of its work.
 */
export function createPlannedRetries(given: {
  readonly engine: ports.Engine;
  readonly clock: ports.Clock;
  readonly records: ReturnType<typeof createBackgroundRecords>;
  /** Pauses before the second attempt and those that follow. */
  readonly delaysMs: readonly number[];
  /** The kind of work that executes turns. */
  readonly kind: string;
}) {
  const { engine, clock, records, delaysMs, kind } = given;
  const idOf = (turnId: string, attempt: number) => `${workIdOf(turnId, { attempt })}/planned`;

  /** Whether the attempt before this one may still be storing its end. */
  const begin = async ({ runId, attempt }: PlannedAttempt): Promise<boolean> => {
    const found = await records.plannedTurn(runId, attempt);
    if (typeof found !== "object") return found === "not yet";
    await engine.start(kind, workIdOf(found.turnId, { attempt }), found, { key: found.agentId });
    return false;
  };

  engine.define<PlannedAttempt, void>(
    KIND,
    async ({ signal, sleep, step }, planned) => {
      await sleep("delay", planned.delayMs);
      for (let look = 1; ; look++) {
        const attempt = () => retryWhileStoreAway({ clock, signal }, () => begin(planned));
        if (!(await step(`begin-${look}`, attempt, { repeatable: true }))) return;
        await sleep(`look-${look}`, LOOK_MS);
      }
    },
    { onInterrupted: "resume" },
  );

  return {
    /** The attempt that follows this end of a turn, if one does. The caller of a turn that is told of its end decides by itself. */
    after(turn: AcceptedTurn, end: TurnEnd): Retry | undefined {
      const attempt = attemptOf(turn) + 1;
      const delayMs = delaysMs[attempt - 2];
      return end.isRepeatable && !turn.tell && delayMs !== undefined ? { attempt, delayMs } : undefined;
    },

    /**
     * Makes an attempt durable, before the end of the attempt before it is stored. If the process dies in between, the turn is closed as failed, and
     * the planned attempt finds nothing to do.
     */
    plan: ({ turnId, runId }: AcceptedTurn, { attempt, delayMs }: Retry): Promise<unknown> =>
      engine.start(KIND, idOf(turnId, attempt), { runId, attempt, delayMs } satisfies PlannedAttempt),

    /** The turn was stopped: nothing waits any more. */
    forget: (turnId: string, attempt: number): Promise<unknown> => engine.cancel(idOf(turnId, attempt), "stopped"),
  };
}
