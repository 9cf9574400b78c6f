import { isStoreAway, orAborted, type ports } from "@portico/core";
import type { createBackgroundRecords } from "../background/background-records.ts";
import type { AskedTurn } from "../background/background-turn.ts";
import { ASKED_UNREAD_CHARACTERS, REPLAY_PAUSE_MS, WATCH_MS, WATCH_WAITING_MS } from "../limits.ts";
import { eventsOf } from "../turns/transcript.ts";
import { type TurnEvent, type TurnMessage, transcriptStream } from "../turns/turn.ts";
import { TurnFailed } from "../turns/turn-failed.ts";

/** A call of a tool that waits for a person. */
export interface WaitingCall {
  readonly callId: string;
  readonly toolId: string;
  readonly name: string;
  /** ISO 8601. */
  readonly expiresAt: string;
}

/** What happens to an asked turn, as its caller is told. */
export type FollowedEvent =
  /** Pieces of one text have one `id`. */
  | { readonly type: "message"; readonly message: TurnMessage }
  /** The turn waits until a person has decided about these calls. It may go on in another process. */
  | { readonly type: "waiting"; readonly calls: readonly WaitingCall[] }
  /** Its end is durable. The last event. */
  | { readonly type: "ended" };

export interface FollowedTurnGiven {
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly records: Pick<ReturnType<typeof createBackgroundRecords>, "openTurn">;
}

/**
 * One turn, for its caller. While it executes in this process, its events are heard. Otherwise they are read from its written transcript, so that none
 * is lost wherever it executes. Positions count from 0, as in the transcript.
 */
export class FollowedTurn {
  readonly #turn: Pick<AskedTurn, "turnId" | "runId">;
  readonly #given: FollowedTurnGiven;
  #queue: FollowedEvent[] = [];
  #unread = 0;
  #isLeftBehind = false;
  /** Of the next event that is not known. */
  #position = 0;
  /** Of the log's next entry, and the position of its first event. */
  #next = { sequence: 1, position: 0 };
  #isHere = false;
  /** Stores say more than this process was told. */
  #isDue = false;
  #isWaiting = false;
  #waiting: WaitingCall[] = [];
  #toldWait = 0;
  #changed = Promise.withResolvers<void>();

  constructor(turn: Pick<AskedTurn, "turnId" | "runId">, given: FollowedTurnGiven) {
    this.#turn = turn;
    this.#given = given;
  }

  /** It executes in this process from now on. */
  entered(): void {
    this.#isHere = true;
  }

  /** It does not execute in this process any more: stores say what has become of it. */
  left(): void {
    this.#isHere = false;
    this.#isDue = true;
    this.#changed.resolve();
  }

  /** Takes an event of this process. */
  hear(event: TurnEvent, position: number, size: number): void {
    // It went on here after it had executed elsewhere: what came before is in the log.
    if (position > this.#position) this.#isHere = false;
    this.#take(event, position, size);
  }

  /** The events until the end. Rejects with the signal's reason, and with TurnFailed if they are read too slowly. */
  async *events(signal: AbortSignal): AsyncGenerator<FollowedEvent, void> {
    for (;;) {
      if (this.#isLeftBehind) throw new TurnFailed("caller_too_slow", "The answer was read too slowly");
      const events = this.#queue;
      [this.#queue, this.#unread] = [[], 0];
      for (const event of events) {
        yield event;
        if (event.type === "ended") return;
      }
      if (this.#queue.length > 0 || this.#isLeftBehind) continue;
      this.#changed = Promise.withResolvers();
      await this.#untilChanged(signal);
      if (!this.#isHere) await this.#look(signal);
    }
  }

  async #untilChanged(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#isDue) return;
    if (this.#isHere) return orAborted(this.#changed.promise, signal);
    const timer = this.#given.clock.after(this.#isWaiting ? WATCH_WAITING_MS : WATCH_MS, () => this.#changed.resolve());
    try {
      await orAborted(this.#changed.promise, signal);
    } finally {
      timer.cancel();
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { log, clock, records } = this.#given;
    this.#isDue = false;
    try {
      // Read before the output: what is written between the two is told.
      const open = await records.openTurn(this.#turn.runId);
      for await (const entry of log.read(transcriptStream(this.#turn.turnId), { from: this.#next.sequence, signal })) {
        const events = eventsOf(entry);
        for (const [at, event] of events.entries())
          this.#take(event, this.#next.position + at, JSON.stringify(event.data).length);
        this.#next = { sequence: entry.sequence + 1, position: this.#next.position + events.length };
        // The caller reads this first.
        this.#isDue = this.#unread > ASKED_UNREAD_CHARACTERS / 2;
        if (this.#isDue) return;
      }
      if (!open) this.#tell({ type: "ended" }, 0);
      else if (open.part !== undefined && open.part > this.#toldWait) {
        this.#toldWait = open.part;
        this.#isWaiting = true;
        this.#tell({ type: "waiting", calls: this.#waiting.splice(0) }, 0);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!isStoreAway(error)) throw error;
      await clock.sleep(REPLAY_PAUSE_MS, signal);
    }
  }

  #take(event: TurnEvent, position: number, size: number): void {
    if (position !== this.#position) return;
    this.#position++;
    this.#isWaiting = false;
    if (event.event !== "query:message") return;
    const { message } = event.data;
    const call = message.content as (WaitingCall & { readonly status: string }) | undefined;
    if (message.type === "approval" && call?.status === "waiting") this.#waiting.push(call);
    this.#tell({ type: "message", message }, size);
  }

  #tell(event: FollowedEvent, size: number): void {
    this.#unread += size;
    this.#isLeftBehind ||= this.#unread > ASKED_UNREAD_CHARACTERS;
    // A caller that was left behind gets an error, and nothing more is held for it.
    if (this.#isLeftBehind) this.#queue = [];
    else this.#queue.push(event);
    this.#changed.resolve();
  }
}
