import type { ports, Scope } from "@portico/core";
import { OPEN_TURNS_BELIEVED_MS, OPEN_TURNS_REPEAT_MS, OPEN_TURNS_PER_MESSAGE } from "../limits.ts";
import type { SharedPorts } from "@portico/core/kit";

/** A turn that executes, or was just admitted. */
export interface OpenTurn {
  readonly turnId: string;
  readonly userId: string;
  readonly agentId: string;
}

/** A message of a process to the others about its turns. */
interface OpenTurnsMessage {
  readonly process: string;
  /** `forMs`: how long an admitted turn is open. Null for a turn that executes. */
  readonly open: readonly (OpenTurn & { readonly forMs: number | null })[];
  readonly closed: readonly string[];
  /** The process has just started, and asks the others. */
  readonly asks: boolean;
}

interface Known extends OpenTurn {
  readonly executes: boolean;
  /** In milliseconds since 1970. */
  readonly until: number;
}

export interface OpenTurnsGiven extends SharedPorts {
  readonly clock: ports.Clock;
  /** Names this process. */
  readonly process: string;
}

const TOPIC = "conversations-runs/open-turns";

/** The turns that are open in this process, and in other processes by their last messages. Limits count them, and they show which agents are busy. */
export class OpenTurns {
  readonly #given: OpenTurnsGiven;
  readonly #own = new Map<string, Known>();
  /** By process, and then by turn. */
  readonly #elsewhere = new Map<string, Map<string, Known>>();
  #repeat: ports.Timer | undefined;

  constructor(given: OpenTurnsGiven, scope: Scope) {
    this.#given = given;
    if (!given.isShared) return;
    const ask = () => this.#publish({ asks: true });
    const subscription = given.bus.subscribe(TOPIC, {
      received: (message) => this.#receive(message as OpenTurnsMessage),
      missed: ask,
    });
    void subscription.active.then((isActive) => isActive && ask());
    scope.onClose(() => {
      subscription.close();
      this.#repeat?.cancel();
      this.#publish({ closed: [...this.#own.keys()] });
    });
  }

  /** A turn executes here until `close`, or was admitted here and counts until a time in milliseconds since 1970. */
  open({ turnId, userId, agentId }: OpenTurn, admittedUntil?: number): void {
    const turn = { turnId, userId, agentId, executes: admittedUntil === undefined, until: admittedUntil ?? Infinity };
    this.#own.set(turnId, turn);
    if (!this.#given.isShared) return;
    this.#publish({ open: [turn] });
    this.#repeat ??= this.#given.clock.after(OPEN_TURNS_REPEAT_MS, () => this.#publishAll());
  }

  close(turnId: string): void {
    if (this.#own.delete(turnId)) this.#publish({ closed: [turnId] });
  }

  /** All open turns that are known, each once. */
  all(): readonly OpenTurn[] {
    return this.#known();
  }

  /** The agents whose turns execute now. */
  busyAgents(): ReadonlySet<string> {
    return new Set(this.#known().flatMap(({ agentId, executes }) => (executes ? [agentId] : [])));
  }

  #known(): readonly Known[] {
    this.#forgetEnded();
    const known = new Map<string, Known>();
    for (const turns of this.#elsewhere.values()) for (const [turnId, turn] of turns) known.set(turnId, turn);
    for (const [turnId, turn] of this.#own) known.set(turnId, turn);
    return [...known.values()];
  }

  #forgetEnded(): void {
    const now = this.#given.clock.now();
    for (const turns of [this.#own, ...this.#elsewhere.values()])
      for (const [turnId, { until }] of turns) if (until <= now) turns.delete(turnId);
    for (const [process, turns] of this.#elsewhere) if (turns.size === 0) this.#elsewhere.delete(process);
  }

  #forgetAdmitted(turnId: string): void {
    if (!this.#own.get(turnId)?.executes) this.#own.delete(turnId);
    for (const turns of this.#elsewhere.values()) turns.delete(turnId);
  }

  /** Open turns are published again: other processes believe a message for a short time only, because a process may die. */
  #publishAll(): void {
    this.#forgetEnded();
    this.#repeat = undefined;
    const turns = [...this.#own.values()];
    for (let from = 0; from < turns.length; from += OPEN_TURNS_PER_MESSAGE)
      this.#publish({ open: turns.slice(from, from + OPEN_TURNS_PER_MESSAGE) });
    if (turns.length > 0) this.#repeat = this.#given.clock.after(OPEN_TURNS_REPEAT_MS, () => this.#publishAll());
  }

  #publish({
    open = [],
    closed = [],
    asks = false,
  }: {
    open?: readonly Known[];
    closed?: readonly string[];
    asks?: boolean;
  }): void {
    const { bus, clock, process } = this.#given;
    const now = clock.now();
    const sent = open.map(({ executes, until, ...turn }) => ({ ...turn, forMs: executes ? null : until - now }));
    bus.publish(TOPIC, { process, open: sent, closed, asks } satisfies OpenTurnsMessage, { toOthers: true });
  }

  #receive({ process, open, closed, asks }: OpenTurnsMessage): void {
    this.#forgetEnded();
    const now = this.#given.clock.now();
    // The turn is open in that process, and not where it was admitted.
    for (const turnId of [...closed, ...open.map((turn) => turn.turnId)]) this.#forgetAdmitted(turnId);
    const turns = this.#elsewhere.get(process) ?? new Map<string, Known>();
    for (const { forMs, ...turn } of open)
      turns.set(turn.turnId, {
        ...turn,
        executes: forMs === null,
        until: now + Math.min(forMs ?? Infinity, OPEN_TURNS_BELIEVED_MS),
      });
    for (const turnId of closed) turns.delete(turnId);
    if (turns.size > 0) this.#elsewhere.set(process, turns);
    else this.#elsewhere.delete(process);
    if (asks && this.#own.size > 0) {
      this.#repeat?.cancel();
      this.#publishAll();
    }
  }
}
