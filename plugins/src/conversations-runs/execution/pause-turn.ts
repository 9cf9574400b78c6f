import { isStoreAway, ports, retryWhileStoreAway } from "@portico/core";
import type { Transcript } from "../turns/transcript.ts";
import type { PlayedTurn } from "../turns/turn.ts";
import { leftBehind, type PausedEnd, type TurnEnd } from "../turns/turn-end.ts";
import { TurnFailed, TurnStopped } from "../turns/turn-failed.ts";
import type { TurnOutput } from "../turns/turn-output.ts";
import { type Approval, approvalContent } from "../approvals/approval.ts";
import { stateEntries } from "../approvals/paused-turn.ts";
import type { TurnWait, TurnWaits } from "../approvals/turn-waits.ts";

/** An entry for a stream of the log. */
export interface LogLine {
  readonly stream: string;
  readonly entry: object;
}

/** What a turn asks and keeps when it begins to wait. */
export interface Pausing {
  /** Counts the waits of the turn. */
  readonly number: number;
  readonly approvals: readonly Approval[];
  /** The writes of the wait and its approvals. */
  readonly writes: readonly ports.Write[];
  readonly entries: readonly LogLine[];
}

export interface PauseTurnGiven {
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly waits: TurnWaits;
}

/** One turn that is to wait. */
export interface PausingTurn {
  readonly turn: PlayedTurn;
  readonly output: TurnOutput;
  readonly transcript: Transcript;
  readonly signal: AbortSignal;
  readonly of: TurnWait["of"];
  /** Of the wait, from 1. */
  readonly number: number;
}

/**
 * A turn begins to wait for a person. `write` writes all of it in one commit, with the last entry of the transcript; it returns the entry's
 * sequence number and throws TurnStopped if the turn is to stop. Returns the end of a turn that cannot wait. Throws when stores are away
 * until the signal aborts, and EngineFenced.
 */
export async function pauseTurn(
  { clock, telemetry, waits }: PauseTurnGiven,
  { turn, output, transcript, signal, of, number }: PausingTurn,
  { calls, state, timeoutMs }: PausedEnd,
  write: (pausing: Pausing, entry: LogLine) => Promise<number | undefined>,
): Promise<TurnEnd | undefined> {
  const asked = { of, number, calls, at: clock.now(), timeoutMs };
  try {
    const entries = stateEntries(turn.turnId, number, state);
    const approvals = await retryWhileStoreAway({ clock, signal }, () => waits.ask(turn, asked));
    const pausing = { number, approvals, entries, writes: waits.begin(turn, asked, approvals) };
    const events = output.askingFor(approvals.map(approvalContent));
    await retryWhileStoreAway({ clock, signal }, () => transcript.end(events, (entry) => write(pausing, entry)));
    return undefined;
  } catch (error) {
    if (error instanceof TurnStopped) return stoppedTurn(output, error.reason);
    signal.throwIfAborted();
    if (isStoreAway(error) || error instanceof ports.EngineFenced) throw error;
    telemetry.log.error("A turn could not begin to wait for a person", { turn: turn.turnId }, error);
    const { failure, ...lost } = lostTurn(output);
    return { ...lost, failure: error instanceof TurnFailed ? { code: error.code, message: error.message } : failure };
  }
}

/** The end of a turn that was stopped while it waited. */
export function stoppedTurn(output: TurnOutput, reason: string): TurnEnd {
  output.refuseOpenCalls("The turn was stopped before this call could run. It was not run");
  return { ...leftBehind(output.produced), status: "interrupted", reason };
}

/** The end of a turn that could not be kept while it waited. */
export function lostTurn(output: TurnOutput): TurnEnd {
  output.refuseOpenCalls("The turn ended before this call could run. It was not run");
  const message = "The turn could not be kept while it waited for a person";
  return { ...leftBehind(output.produced), status: "failed", reason: "error", failure: { code: "internal_error", message } };
}
