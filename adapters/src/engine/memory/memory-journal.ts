import type { Ending, Journal, Note, OpenWork, Place, WorkState } from "../journal.ts";

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
  reason?: string;
  ended?: Ending;
}

/** A journal in this process's memory, gone with it: nobody else can own it, and there is nothing to take up. */
export function createMemoryJournal(): Journal {
  const byNumber = new Map<number, Work>();
  const byId = new Map<string, Work>();
  /** Of each kind, in the order of the places. */
  const lines = new Map<string, Map<number, Work>>();
  /** Not ended, of each kind and key, in the order of acceptance. */
  const open = new Map<string, Set<Work>>();
  const ended = new Set<Work>();
  const keyLimits = new Map<string, number>();
  let lastWork = 0;
  let lastPlace = 0;

  const openOf = ({ kind, key }: { readonly kind: string; readonly key: string }): Set<Work> => {
    const name = JSON.stringify([kind, key]);
    const found = open.get(name) ?? new Set();
    open.set(name, found);
    return found;
  };
  const lineOf = (kind: string): Map<number, Work> => {
    const found = lines.get(kind) ?? new Map();
    lines.set(kind, found);
    return found;
  };

  /** The first works of a key, as many as may be in line or executing, come into line where they are not. */
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
    if (work.place !== undefined) lineOf(work.kind).delete(work.place);
    work.place = undefined;
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
    async accept({ kind, id, key, input, acceptedAt }) {
      if (byId.has(id)) return { duplicate: true, places: [] };
      const work: Work = { work: ++lastWork, id, kind, key, acceptedAt, notes: new Map(), ...QUEUED };
      put(work, { kind: "input", name: "", number: 0, state: "done", value: input });
      byNumber.set(work.work, work);
      byId.set(id, work);
      openOf(work).add(work);
      return { duplicate: false, places: advance(work) };
    },
    async begin(number) {
      const work = byNumber.get(number);
      if (work?.state !== "lined") return undefined;
      leaveLine(work);
      work.state = "executing";
      work.attempt++;
      return toOpenWork(work);
    },
    async note(number, note) {
      const work = byNumber.get(number);
      if (work && !work.ended) put(work, note);
    },
    async signal(id, name, payload) {
      const work = openById(id);
      if (!work) return undefined;
      const earlier = work.notes.values().filter((note) => note.kind === "signal" && note.name === name);
      const note: Note = { kind: "signal", name, number: [...earlier].length + 1, state: "done", value: payload };
      put(work, note);
      return { work: work.work, note };
    },
    async cancel(id, reason, now) {
      const work = openById(id);
      if (!work) return { work: undefined, places: [] };
      work.reason ??= reason;
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
    line: (kind, after, limit) =>
      [
        ...lineOf(kind)
          .entries()
          .filter(([place]) => place > after)
          .take(limit),
      ].map(([place, { work }]) => ({ kind, work, place })),
    notes: (number) => [...(byNumber.get(number)?.notes.values() ?? [])],
  };
}

const QUEUED = { state: "queued", place: undefined, attempt: 0 } as const;

function toOpenWork({ work, id, kind, attempt, reason }: Work): OpenWork {
  return { work, id, kind, attempt, reason };
}
