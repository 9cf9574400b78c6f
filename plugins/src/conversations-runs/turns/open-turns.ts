import type { ports, Scope } from "@portico/core";
import { BUSY_BELIEVED_MS, BUSY_REPEAT_MS, OPEN_TURNS_PER_MESSAGE } from "../limits.ts";
import type { SharedPorts } from "../shared-ports.ts";

/** A turn that counts toward the turns at once. */
export interface OpenTurn {
  readonly turnId: string;
  readonly userId: string;
  readonly agentId: string;
}

/** What a process tells the others of its turns. */
interface OpenTurnsMessage {
  readonly process: string;
  readonly open: readonly (OpenTurn & { readonly forMs: number | null })[];
  readonly closed: readonly string[];
  /** It has just come, and asks the others. */
  readonly asks: boolean;
}

interface Known extends OpenTurn {
  readonly until: number;
}

export interface OpenTurnsGiven extends SharedPorts {
  readonly clock: ports.Clock;
  /** Names this process. */
  readonly process: string;
}

const TOPIC = "conversations-runs/open-turns";

/** The turns that are open in this process, and in others as these said last. Only turns that may be counted are told to others. */
export class OpenTurns {
  readonly #given: OpenTurnsGiven;
  readonly #own = new Map<string, Known>();
  readonly #shared = new Set<string>();
  /** By process, and then by turn. */
  readonly #elsewhere = new Map<string, Map<string, Known>>();
  #repeat: ports.Timer | undefined;

  constructor(given: OpenTurnsGiven, scope: Scope) {
    this.#given = given;
    if (!given.isShared) return;
    const ask = () => this.#publish({ asks: true });
    const subscription = given.bus.subscribe(TOPIC, {
      received: (message) => this.#hear(message as OpenTurnsMessage),
      missed: ask,
    });
    void subscription.active.then((isActive) => isActive && ask());
    scope.onClose(() => {
      subscription.close();
      this.#repeat?.cancel();
      this.#publish({ closed: [...this.#shared] });
    });
  }

  /** A turn is open until `close`, or until a time in milliseconds since 1970. */
  open({ turnId, userId, agentId }: OpenTurn, until = Infinity): void {
    this.#own.set(turnId, { turnId, userId, agentId, until });
  }

  /** An open turn may be counted by other processes. */
  share(turnId: string): void {
    const turn = this.#own.get(turnId);
    if (!turn || !this.#given.isShared) return;
    this.#shared.add(turnId);
    this.#publish({ open: [turn] });
    this.#repeat ??= this.#given.clock.after(BUSY_REPEAT_MS, () => this.#publishAll());
  }

  close(turnId: string): void {
    this.#own.delete(turnId);
    if (this.#shared.delete(turnId)) this.#publish({ closed: [turnId] });
  }

  /** All open turns that are known, each once. */
  all(): readonly OpenTurn[] {
    this.#forgetEnded();
    const known = new Map<string, OpenTurn>();
    for (const turns of this.#elsewhere.values()) for (const [turnId, turn] of turns) known.set(turnId, turn);
    for (const [turnId, turn] of this.#own) known.set(turnId, turn);
    return [...known.values()];
  }

  #forgetEnded(): void {
    const now = this.#given.clock.now();
    for (const turns of [this.#own, ...this.#elsewhere.values()])
      for (const [turnId, { until }] of turns) if (until <= now) turns.delete(turnId);
    for (const turnId of this.#shared) if (!this.#own.has(turnId)) this.#shared.delete(turnId);
    for (const [process, turns] of this.#elsewhere) if (turns.size === 0) this.#elsewhere.delete(process);
  }

  #forgetAccepted(turnId: string): void {
    if (this.#own.get(turnId)?.until !== Infinity) this.#own.delete(turnId);
    for (const turns of this.#elsewhere.values()) turns.delete(turnId);
  }

  /** While turns are open, they are told again: others believe them for a short time only, because a process may die. */
  #publishAll(): void {
    this.#forgetEnded();
    this.#repeat = undefined;
    const turns = [...this.#shared].map((turnId) => this.#own.get(turnId)!);
    for (let from = 0; from < turns.length; from += OPEN_TURNS_PER_MESSAGE)
      this.#publish({ open: turns.slice(from, from + OPEN_TURNS_PER_MESSAGE) });
    if (turns.length > 0) this.#repeat = this.#given.clock.after(BUSY_REPEAT_MS, () => this.#publishAll());
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
    const sent = open.map(({ until, ...turn }) => ({ ...turn, forMs: until === Infinity ? null : until - now }));
    bus.publish(TOPIC, { process, open: sent, closed, asks } satisfies OpenTurnsMessage, { toOthers: true });
  }

  #hear({ process, open, closed, asks }: OpenTurnsMessage): void {
    this.#forgetEnded();
    const now = this.#given.clock.now();
    // It is not where it was accepted any more.
    for (const turnId of [...closed, ...open.map((turn) => turn.turnId)]) this.#forgetAccepted(turnId);
    const turns = this.#elsewhere.get(process) ?? new Map<string, Known>();
    for (const { forMs, ...turn } of open)
      turns.set(turn.turnId, { ...turn, until: now + Math.min(forMs ?? Infinity, BUSY_BELIEVED_MS) });
    for (const turnId of closed) turns.delete(turnId);
    if (turns.size > 0) this.#elsewhere.set(process, turns);
    else this.#elsewhere.delete(process);
    if (asks && this.#shared.size > 0) {
      this.#repeat?.cancel();
      this.#publishAll();
    }
  }
}
