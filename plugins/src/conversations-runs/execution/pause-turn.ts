import { isStoreAway, ports, retryWhileStoreAway } from "@portico/core";
import { type Approval, approvalContent } from "../approvals/approval.ts";
import type { AskedCall, TurnWait, TurnWaits } from "../approvals/turn-waits.ts";
import { PROGRESS_CHARACTERS, PROGRESS_PIECE_CHARACTERS } from "../limits.ts";
import { Produced } from "../turns/produced.ts";
import { eventsOf, type StatePiece, statePieceOf, type Transcript, type Written } from "../turns/transcript.ts";
import { type PlayedTurn, transcriptStream } from "../turns/turn.ts";
import { leftBehind, type TurnEnd } from "../turns/turn-end.ts";
import { TurnFailed, TurnStopped } from "../turns/turn-failed.ts";
import type { TurnOutput } from "../turns/turn-output.ts";
import type { TraceBefore } from "../turns/turn-trace.ts";

/** A turn that does not end: it waits for a person. */
export interface PausedEnd {
  readonly status: "waiting";
  readonly calls: readonly AskedCall[];
  readonly state: PausedState;
  readonly timeoutMs: number;
}

/** What a turn keeps while it waits, besides what it has told. */
export interface PausedState {
  /** Of its engine. */
  readonly progress: object;
  /** A message has reached its user. */
  readonly hasDelivered: boolean;
  /** How long it has executed, without its waits. */
  readonly executedMs: number;
  readonly trace: TraceBefore;
}

/** A turn that goes on after a wait, as its log has it. */
export interface ReadTurn {
  /** Undefined if it is missing or damaged. */
  readonly state: PausedState | undefined;
  readonly produced: Produced;
  /** How many messages were told. */
  readonly messages: number;
  readonly transcript: { readonly written: readonly Written[]; readonly position: number };
}

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
    waits.asked();
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

/** Reads a turn that goes on after its wait of this number. */
export async function readTurn(log: ports.EventLog, turnId: string, wait: number): Promise<ReadTurn> {
  const produced = new Produced();
  const written: Written[] = [];
  const messageIds = new Set<string>();
  let [position, text] = [0, ""];
  for await (const entry of log.read(transcriptStream(turnId))) {
    const events = eventsOf(entry);
    written.push({ first: position, sequence: entry.sequence });
    position += events.length;
    for (const event of events) {
      produced.add(event);
      if (event.event === "query:message") messageIds.add(event.data.message.id);
    }
    const piece = statePieceOf(entry);
    if (piece?.wait === wait) text += piece.text;
  }
  return { state: parsed(text), produced, messages: messageIds.size, transcript: { written, position } };
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

/** The entries of the transcript's stream that keep a turn. Throws TurnFailed if it is too long to be kept. */
function stateEntries(turnId: string, wait: number, state: PausedState) {
  const text = JSON.stringify(state);
  if (text.length > PROGRESS_CHARACTERS)
    throw new TurnFailed("turn_too_long", "The turn cannot wait for a person, because it is too long to be kept");
  const pieces: { readonly stream: string; readonly entry: object }[] = [];
  for (let from = 0; from < text.length;) {
    const to = endOfPiece(text, from + PROGRESS_PIECE_CHARACTERS);
    const piece: StatePiece = { wait, text: text.slice(from, to) };
    pieces.push({ stream: transcriptStream(turnId), entry: { events: [], kept: piece } });
    from = to;
  }
  return pieces;
}

/** Never between the halves of one character: not every store takes a half. */
function endOfPiece(text: string, at: number): number {
  return /[\uD800-\uDBFF]/.test(text[at - 1] ?? "") ? at + 1 : at;
}

function parsed(text: string): PausedState | undefined {
  try {
    return JSON.parse(text) as PausedState;
  } catch {
    return undefined;
  }
}
