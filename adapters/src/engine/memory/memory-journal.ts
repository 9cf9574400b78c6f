import type { Ending, Journal, Note, OpenWork, Place, Rest, WorkState } from "../journal.ts";

interface Work {
  readonly work: number;
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly acceptedAt: number;
  readonly notes: Map<string, Note>;
  state: WorkState;
  place: number | undefined;
  attempt: number;
  /** Set for parked work, until it executes again. */
  rest?: Rest | undefined;
  reason?: string;
  ended?: Ending;
}

/** A journal in this process's memory. It ends with the process, has no other owner, and has nothing to take over. */
export function createMemoryJournal(): Omit<Journal, "held" | "begun" | "ended" | "nextAfter"> {
  const byNumber = new Map<number, Work>();
  const byId = new Map<string, Work>();
  /** Work of each kind that is lined up, in the order of places. Returned work comes first. */
  const lines = new Map<string, Map<number, Work>>();
  const returned = new Map<string, Map<number, Work>>();
  const parked = new Set<Work>();
  /** Open work of each kind and key, in the order of acceptance. */
  const open = new Map<string, Set<Work>>();
  const ended = new Set<Work>();
  const keyLimits = new Map<string, number>();
  let lastWork = 0;
  let lastPlace = 0;
  let lastReturned = RETURNED;
  let lastSignal = 0;

  const openOf = ({ kind, key }: { readonly kind: string; readonly key: string }): Set<Work> => {
    const name = JSON.stringify([kind, key]);
    const found = open.get(name) ?? new Set();
    open.set(name, found);
    return found;
  };
  const lineOf = (kind: string, of = lines): Map<number, Work> => {
    const found = of.get(kind) ?? new Map();
    of.set(kind, found);
    return found;
  };

  /** Lines up the first works of a key, up to the key's limit of open works that have their turn. */
  const advance = (of: { readonly kind: string; readonly key: string }): readonly Place[] => {
    const works = openOf(of);
    if (works.size === 0) open.delete(JSON.stringify([of.kind, of.key]));
    const first = [...works.values().take(keyLimits.get(of.kind) ?? 1)].filter((work) => work.state === "queued");
    return first.map((work) => {
      work.state = "lined";
      work.place = ++lastPlace;
      lineOf(work.kind).set(work.place, work);
      return { kind: work.kind, work: work.work, place: work.place };
    });
  };
  const leaveLine = (work: Work): void => {
    if (work.place !== undefined) lineOf(work.kind, work.place < 0 ? returned : lines).delete(work.place);
    work.place = undefined;
  };
  const begin = (work: Work): OpenWork => {
    leaveLine(work);
    work.state = "executing";
    if (!work.rest) work.attempt++;
    work.rest = undefined;
    return toOpenWork(work);
  };
  const comeBack = (work: Work, rest = work.rest): Place => {
    parked.delete(work);
    work.rest = rest;
    work.state = "lined";
    work.place = ++lastReturned;
    lineOf(work.kind, returned).set(work.place, work);
    return { kind: work.kind, work: work.work, place: work.place };
  };
  const end = (work: Work, ending: Ending): readonly Place[] => {
    leaveLine(work);
    openOf(work).delete(work);
    if (ending.state !== "unclosed") work.notes.clear();
    const { reason } = work;
    const cancelled = reason !== undefined && ending.state !== "unclosed";
    work.state = cancelled ? "cancelled" : ending.state;
    work.ended = cancelled ? { ...ending, output: undefined, error: reason } : ending;
    ended.add(work);
    return advance(work);
  };
  const put = (work: Work, note: Note): void => void work.notes.set(JSON.stringify([note.kind, note.name, note.number]), note);
  const openById = (id: string): Work | undefined => {
    const work = byId.get(id);
    return work?.ended ? undefined : work;
  };

  return {
    claim: async () => ({ owned: true }),
    renew: async () => {},
    release: async () => {},
    async takeUp(kinds) {
      for (const { kind, keyLimit } of kinds) keyLimits.set(kind, keyLimit);
      return [];
    },
    async accept({ kind, id, key, input, acceptedAt, atOnce }) {
      if (byId.has(id)) return { duplicate: true, places: [] };
      const work: Work = { work: ++lastWork, id, kind, key, acceptedAt, notes: new Map(), ...QUEUED };
      put(work, { kind: "input", name: "", number: 0, state: "done", value: input });
      byNumber.set(work.work, work);
      byId.set(id, work);
      openOf(work).add(work);
      const places = advance(work);
      // It has its turn, so that no earlier work of its key waited: it is the only one that was lined up.
      if (!atOnce || work.place === undefined) return { duplicate: false, places };
      return { duplicate: false, places: [], begun: begin(work) };
    },
    async begin(number) {
      const work = byNumber.get(number);
      return work?.state === "lined" ? begin(work) : undefined;
    },
    async note(number, note) {
      const work = byNumber.get(number);
      if (work && !work.ended) put(work, note);
    },
    async signal(id, name, payload) {
      const work = openById(id);
      if (!work) return undefined;
      const note: Note = { kind: "signal", name, number: ++lastSignal, state: "done", value: payload };
      put(work, note);
      const isAwaited = work.state === "parked" && work.rest?.awaited.includes(name);
      return { work: work.work, note, places: isAwaited ? [comeBack(work)] : [] };
    },
    async park(number, rest) {
      const work = byNumber.get(number);
      if (!work) return [];
      if (rest.order) put(work, rest.order);
      const isAwaited = ({ kind, name, number }: Note) => kind === "signal" && number > rest.known && rest.awaited.includes(name);
      if (work.reason !== undefined || work.notes.values().some(isAwaited)) return [comeBack(work, rest)];
      work.state = "parked";
      work.rest = rest;
      parked.add(work);
      return [];
    },
    async bringBack(now, limit) {
      const due = [...parked].filter((work) => dueOf(work) <= now).sort((a, b) => dueOf(a) - dueOf(b));
      return due.slice(0, limit).map((work) => comeBack(work));
    },
    async cancel(id, reason, now) {
      const work = openById(id);
      if (!work) return { work: undefined, places: [] };
      work.reason ??= reason;
      if (work.state === "parked") return { work: work.work, places: [comeBack(work)] };
      return { work: work.work, places: work.attempt === 0 ? end(work, { state: "interrupted", endedAt: now }) : [] };
    },
    async end(number, ending) {
      const work = byNumber.get(number);
      return work && (!work.ended || work.state === "unclosed") ? end(work, ending) : [];
    },
    async prune(before, limit) {
      const old = [...ended.values().take(limit)].filter(
        (work) => (work.ended?.endedAt ?? 0) < before && work.state !== "unclosed",
      );
      for (const work of old) {
        ended.delete(work);
        byId.delete(work.id);
        byNumber.delete(work.work);
      }
      return old.length;
    },
    find(id) {
      const work = byId.get(id);
      if (!work) return undefined;
      const { kind, state, attempt, acceptedAt } = work;
      const { endedAt, output, error } = work.ended ?? {};
      return { kind, state, attempt, acceptedAt, endedAt, output, error };
    },
    nextDue() {
      const next = [...parked].reduce((first, work) => Math.min(first, dueOf(work)), Number.POSITIVE_INFINITY);
      return Number.isFinite(next) ? next : undefined;
    },
    line: (kind, after, limit) => {
      const behind = (of: typeof lines) =>
        lineOf(kind, of)
          .entries()
          .filter(([place]) => place > after)
          .take(limit);
      return [...behind(returned), ...behind(lines)].slice(0, limit).map(([place, { work }]) => ({ kind, work, place }));
    },
    notes: (number) => [...(byNumber.get(number)?.notes.values() ?? [])],
  };
}

/** Where returned work starts in the queue, before all work that has not begun. */
const RETURNED = -(2 ** 50);

const QUEUED = { state: "queued", place: undefined, attempt: 0 } as const;

function dueOf({ rest }: Work): number {
  return rest?.until ?? Number.POSITIVE_INFINITY;
}

function toOpenWork({ work, id, kind, attempt, reason }: Work): OpenWork {
  return { work, id, kind, attempt, reason };
}
