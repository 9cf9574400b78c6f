import type { ports, Scope } from "@portico/core";
import { BUSY_BELIEVED_MS, BUSY_REPEAT_MS } from "../limits.ts";
import type { SharedPorts } from "../shared-ports.ts";

/** The state that a process reports of itself. */
interface Busy {
  readonly process: string;
  readonly agents: readonly string[];
  /** It has just come, and asks the others. */
  readonly asks: boolean;
}

export interface BusyAgentsGiven extends SharedPorts {
  readonly clock: ports.Clock;
  /** Names this process. */
  readonly process: string;
}

const TOPIC = "conversations-runs/busy-agents";

/** Which agents play turns now, in this process and in others: of those as they said last, for it is only shown. */
export class BusyAgents {
  readonly #given: BusyAgentsGiven;
  readonly #turns = new Map<string, number>();
  /** By process. */
  readonly #elsewhere = new Map<string, { readonly agents: ReadonlySet<string>; readonly until: number }>();
  #repeat: ports.Timer | undefined;

  constructor(given: BusyAgentsGiven, scope: Scope) {
    this.#given = given;
    if (!given.isShared) return;
    const ask = () => this.#say(true);
    const subscription = given.bus.subscribe(TOPIC, { received: (message) => this.#hear(message as Busy), missed: ask });
    void subscription.active.then((isActive) => isActive && ask());
    scope.onClose(() => {
      subscription.close();
      this.#repeat?.cancel();
      this.#turns.clear();
      this.#say(false);
    });
  }

  /** A turn of an agent begins or ends here. */
  change(agentId: string, by: 1 | -1): void {
    const count = (this.#turns.get(agentId) ?? 0) + by;
    if (count > 0) this.#turns.set(agentId, count);
    else this.#turns.delete(agentId);
    if (count === (by > 0 ? 1 : 0)) this.#say(false);
  }

  has(agentId: string): boolean {
    if (this.#turns.has(agentId)) return true;
    const now = this.#given.clock.now();
    return [...this.#elsewhere.values()].some(({ agents, until }) => until > now && agents.has(agentId));
  }

  #say(asks: boolean): void {
    const { isShared, bus, clock, process } = this.#given;
    if (!isShared) return;
    bus.publish(TOPIC, { process, agents: [...this.#turns.keys()], asks } satisfies Busy, { toOthers: true });
    this.#repeat?.cancel();
    if (this.#turns.size > 0) this.#repeat = clock.after(BUSY_REPEAT_MS, () => this.#say(false));
  }

  #hear({ process, agents, asks }: Busy): void {
    const now = this.#given.clock.now();
    for (const [each, { until }] of this.#elsewhere) if (until <= now) this.#elsewhere.delete(each);
    if (agents.length > 0) this.#elsewhere.set(process, { agents: new Set(agents), until: now + BUSY_BELIEVED_MS });
    else this.#elsewhere.delete(process);
    if (asks && this.#turns.size > 0) this.#say(false);
  }
}
