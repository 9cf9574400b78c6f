import { isStoreAway, ports, retryWhileStoreAway } from "@portico/core";
import { Produced } from "./produced.ts";
import { readTranscript } from "./transcript.ts";
import type { PlayedTurn } from "./turn.ts";
import { leftBehind, nothing, type TurnEnd } from "./turn-end.ts";

/** Replaces an end that no store accepts. */
const unkept: TurnEnd = {
  ...nothing,
  status: "failed",
  reason: "error",
  failure: { code: "internal_error", message: "What the turn produced could not be kept" },
};

/** Writes the end, however long the stores take and whatever it contains: no part of a turn may stay open. */
export async function keepEnd(
  given: { readonly clock: ports.Clock; readonly telemetry: ports.Telemetry },
  turn: PlayedTurn,
  end: TurnEnd,
  how: {
    readonly signal: AbortSignal;
    readonly write: (end: TurnEnd) => Promise<unknown>;
    /** Drops an end that no store accepts. */
    readonly letGo: () => void;
  },
): Promise<void> {
  const write = (ended: TurnEnd) => retryWhileStoreAway({ clock: given.clock, signal: how.signal }, () => how.write(ended));
  try {
    await write(end);
  } catch (error) {
    if (isStoreAway(error) || error instanceof ports.EngineFenced) throw error;
    given.telemetry.log.error("The end of a turn could not be kept as it was", { turn: turn.turnId }, error);
    how.letGo();
    await write(unkept);
  }
}

/** The end of a turn whose process died: failed, with its text so far. `write` gets the number of its messages. */
export async function keepRestart(
  log: ports.EventLog,
  turn: PlayedTurn,
  write: (end: TurnEnd, seq: number) => Promise<unknown>,
): Promise<void> {
  const produced = new Produced();
  for await (const event of readTranscript(log, turn.turnId)) produced.add(event);
  try {
    await write({ ...leftBehind(produced), status: "failed", reason: "process_restart" }, produced.seq);
  } catch (error) {
    if (isStoreAway(error)) throw error;
    await write({ ...nothing, status: "failed", reason: "process_restart" }, produced.seq);
  }
}
