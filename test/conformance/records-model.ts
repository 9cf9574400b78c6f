import type { ports } from "@portico/core";
import {
  type Arbitrary,
  array,
  asyncProperty,
  constantFrom,
  type IAsyncProperty,
  oneof,
  option,
  record as recordOf,
} from "fast-check";
import { expect } from "vitest";

interface Thing {
  group?: string | number | boolean | null;
  rank?: string | number | null;
  note: number;
}

type Expectation = "none" | "absent" | "current" | "stale";

interface WriteStep {
  readonly id: string;
  /** Undefined removes. */
  readonly value: Thing | undefined;
  readonly expect: Expectation;
}

type Step =
  | { readonly kind: "write"; readonly write: WriteStep }
  | { readonly kind: "batch"; readonly writes: readonly WriteStep[] }
  | {
      readonly kind: "query";
      readonly group: Thing["group"];
      readonly by: "rank" | undefined;
      readonly descending: boolean;
      readonly limit: number;
    };

type Model = Map<string, ports.Stored<Thing>>;

// Few ids and few values, so that conflicts and ties are the rule.
const id = constantFrom("a", "b", "B", "é", "\uffee", "\u{10000}");
const text = constantFrom("", "a", "Z", "é", "\uffee", "\u{10000}", "1");
const number = constantFrom(-1, 0, 1, 1.5, 10, 2 ** 53, 2 ** 60);
const group = oneof(text, number, constantFrom(true, false, null));
const thing = recordOf({ group, rank: oneof(text, number, constantFrom(null)), note: number }, { requiredKeys: ["note"] });
const expectation = constantFrom<Expectation>("none", "none", "absent", "current", "stale");
const write = recordOf({ id, value: option(thing, { nil: undefined }), expect: expectation });
const step = oneof<Arbitrary<Step>[]>(
  recordOf({ kind: constantFrom("write" as const), write }),
  recordOf({ kind: constantFrom("batch" as const), writes: array(write, { maxLength: 4 }) }),
  recordOf({
    kind: constantFrom("query" as const),
    group: option(group, { nil: undefined }),
    by: constantFrom("rank" as const, undefined),
    descending: constantFrom(true, false),
    limit: constantFrom(1, 2, 3, 100),
  }),
);

let histories = 0;

/** Histories of writes, batches and queries, each in a collection of its own, compared step by step with a Map. */
export function recordsHistories(store: ports.Records): IAsyncProperty<[Step[]]> {
  return asyncProperty(array(step, { maxLength: 25 }), async (steps) => {
    const things = store.collection<Thing>({
      name: `conformance-model-${++histories}`,
      indexes: { group: ["group"], rank: ["rank"], both: ["group", "rank"] },
    });
    const model: Model = new Map();
    for (const next of steps) await play(store, things, model, next);
  });
}

async function play(store: ports.Records, things: ports.Collection<Thing>, model: Model, next: Step): Promise<void> {
  if (next.kind === "query") {
    expect(await pages(things, next)).toEqual(answer(model, next));
    return;
  }
  const steps = next.kind === "write" ? [next.write] : next.writes;
  const planned = plan(model, steps);
  const done = await attempt(() =>
    next.kind === "write" ? one(things, model, next.write) : store.batch(toWrites(things, model, steps)),
  );
  expect(done.conflict).toBe(planned === undefined);
  if (!planned) return expectAll(things, model);
  for (const [key, value] of planned) {
    const stored = await things.get(key);
    expect(stored?.value).toEqual(value);
    const before = model.get(key);
    if (!stored) model.delete(key);
    else {
      if (before && before.version !== stored.version) expect(stored.version).toBeGreaterThan(before.version);
      model.set(key, stored);
    }
  }
  await expectAll(things, model);
}

async function expectAll(things: ports.Collection<Thing>, model: Model): Promise<void> {
  const all = [...model.values()].sort((a, b) => compare(a.id, b.id));
  expect((await things.query({ limit: 1000 })).items).toEqual(all);
}

async function attempt(work: () => Promise<unknown>): Promise<{ conflict: boolean }> {
  try {
    await work();
    return { conflict: false };
  } catch (error) {
    if (error instanceof Error && error.name === "RecordConflict") return { conflict: true };
    throw error;
  }
}

/** The version that a write names: of the record as it is before the step. */
function expected(model: Model, { id, expect }: WriteStep): number | "absent" | undefined {
  if (expect === "none") return undefined;
  if (expect === "absent") return "absent";
  const version = model.get(id)?.version ?? 0;
  return expect === "current" ? version : version - 1;
}

/** A remove cannot expect absence: it then expects nothing. */
function expectedVersion(model: Model, step: WriteStep): number | undefined {
  const found = expected(model, step);
  return found === "absent" ? undefined : found;
}

function one(things: ports.Collection<Thing>, model: Model, step: WriteStep): Promise<unknown> {
  if (step.value === undefined) return things.remove(step.id, expectedVersion(model, step));
  return things.put(step.id, step.value, expected(model, step));
}

function toWrites(things: ports.Collection<Thing>, model: Model, steps: readonly WriteStep[]): ports.Write[] {
  return steps.map((step) =>
    step.value === undefined
      ? things.write.remove(step.id, expectedVersion(model, step))
      : things.write.put(step.id, step.value, expected(model, step)),
  );
}

/** What the writes leave, by id; undefined when one of them conflicts. */
function plan(model: Model, steps: readonly WriteStep[]): Map<string, Thing | undefined> | undefined {
  const after = new Map<string, Thing | undefined>();
  for (const step of steps) {
    const touched = after.has(step.id);
    const exists = touched ? after.get(step.id) !== undefined : model.has(step.id);
    const wanted = step.value === undefined ? expectedVersion(model, step) : expected(model, step);
    // The version of a record that the same batch has changed is not known yet.
    if (wanted === "absent" && exists) return undefined;
    if (typeof wanted === "number" && (touched || wanted !== model.get(step.id)?.version)) return undefined;
    after.set(step.id, step.value);
  }
  return after;
}

async function pages(things: ports.Collection<Thing>, query: Step & { kind: "query" }): Promise<string[]> {
  const found: string[] = [];
  let after: string | undefined;
  do {
    const page: ports.Page<Thing> = await things.query({
      ...(query.group === undefined || query.group === null ? {} : { where: { group: query.group } }),
      ...(query.by && { order: { by: query.by, direction: query.descending ? "descending" : "ascending" } }),
      after,
      limit: query.limit,
    });
    found.push(...page.items.map((item) => item.id));
    after = page.next;
  } while (after !== undefined && found.length < 100);
  return found;
}

function answer(model: Model, { group: wanted, by, descending }: Step & { kind: "query" }): string[] {
  const sign = by && descending ? -1 : 1;
  return [...model.values()]
    .filter(({ value }) => wanted === undefined || wanted === null || value.group === wanted)
    .sort((a, b) => sign * ((by ? compare(a.value.rank, b.value.rank) : 0) || compare(a.id, b.id)))
    .map((stored) => stored.id);
}

/** The order of the port's law, written down a second time: by kind, then by number, or by bytes in hexadecimal. */
function compare(a: Thing["rank"], b: Thing["rank"]): number {
  const [x, y] = [sortKey(a), sortKey(b)];
  return x[0] - y[0] || x[1] - y[1] || (x[2] < y[2] ? -1 : x[2] > y[2] ? 1 : 0);
}

function sortKey(value: Thing["rank"]): [kind: number, number: number, bytes: string] {
  if (value === undefined || value === null) return [0, 0, ""];
  return typeof value === "number" ? [1, value, ""] : [2, 0, Buffer.from(value).toString("hex")];
}
