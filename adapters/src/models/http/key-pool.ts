/** Why a key rests: the upstream refused it, or limited it. */
export type RestReason = "refused" | "limited";

/** One key of a pool. */
export interface PooledKey {
  readonly value: string;
  /** Its place in the settings, from 1. */
  readonly place: number;
}

interface Entry extends PooledKey {
  restsUntil: number;
  reason: RestReason | undefined;
}

/** The keys of one provider: which of them is next, and which of them rest. It has no timers: every question names the present time. */
export class KeyPool {
  #entries: readonly Entry[];
  #last = -1;

  constructor(values: readonly string[]) {
    this.#entries = this.#entriesOf(values);
  }

  /** The next key in turn that does not rest. Undefined if all of them rest. */
  next(now: number): PooledKey | undefined {
    const count = this.#entries.length;
    for (let step = 1; step <= count; step++) {
      const at = (this.#last + step) % count;
      const entry = this.#entries[at]!;
      if (entry.restsUntil > now) continue;
      this.#last = at;
      return entry;
    }
    return undefined;
  }

  /** When the first key ends its rest; a time in the past if one of them is awake. */
  get wakesAt(): number {
    return Math.min(...this.#entries.map(({ restsUntil }) => restsUntil));
  }

  /** How many keys there are, and how many of them rest now, by the reason. */
  count(now: number): { readonly size: number } & Readonly<Record<RestReason, number>> {
    const resting = (why: RestReason) =>
      this.#entries.filter(({ restsUntil, reason }) => restsUntil > now && reason === why).length;
    return { size: this.#entries.length, refused: resting("refused"), limited: resting("limited") };
  }

  /** Whether a key rests because the upstream limited it. */
  hasLimited(now: number): boolean {
    return this.#entries.some(({ restsUntil, reason }) => restsUntil > now && reason === "limited");
  }

  /** The key whose rest ends first, although it rests. */
  first(): PooledKey {
    return this.#entries.reduce((first, entry) => (entry.restsUntil < first.restsUntil ? entry : first));
  }

  /** Let a key rest. A rest is never made shorter: the answer to another call may have asked for a longer one (litellm#40130). */
  rest(value: string, until: number, reason: RestReason): void {
    for (const entry of this.#entries) {
      if (entry.value !== value || entry.restsUntil >= until) continue;
      entry.restsUntil = until;
      entry.reason = reason;
    }
  }

  /** Other keys. A key that stays keeps its rest, and a new key begins awake (hermes-agent#119162). */
  replace(values: readonly string[]): void {
    const before = new Map(this.#entries.map((entry) => [entry.value, entry]));
    this.#entries = this.#entriesOf(values).map((entry) => {
      const same = before.get(entry.value);
      return same ? { ...entry, restsUntil: same.restsUntil, reason: same.reason } : entry;
    });
    this.#last = -1;
  }

  #entriesOf(values: readonly string[]): readonly Entry[] {
    return [...new Set(values)].map((value, index) => ({ value, place: index + 1, restsUntil: 0, reason: undefined }));
  }
}
