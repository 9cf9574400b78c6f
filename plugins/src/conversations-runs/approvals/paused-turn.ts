import type { ports } from "@portico/core";
import { PROGRESS_CHARACTERS, PROGRESS_PIECE_CHARACTERS } from "../limits.ts";
import { Produced } from "../turns/produced.ts";
import { eventsOf, type StatePiece, statePieceOf, type Written } from "../turns/transcript.ts";
import { transcriptStream } from "../turns/turn.ts";
import { TurnFailed } from "../turns/turn-failed.ts";
import type { TraceBefore } from "../turns/turn-trace.ts";

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

/** The entries of the transcript's stream that keep a turn. Throws TurnFailed if it is too long to be kept. */
export function stateEntries(turnId: string, wait: number, state: PausedState) {
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

function parsed(text: string): PausedState | undefined {
  try {
    return JSON.parse(text) as PausedState;
  } catch {
    return undefined;
  }
}
