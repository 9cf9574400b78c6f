import { type FindPlace, findPage, type FindSource } from "@portico/core";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

/** A subject with the tags by which it is found. Many have the same time. */
interface Subject extends FindPlace {
  readonly tags: readonly number[];
  readonly isReadable: boolean;
}

const TAGS = 3;
/** Places that one call may read of one source, besides those of a page. */
const EXAMINED = 48;
const newestFirst = (one: FindPlace, other: FindPlace): number =>
  other.at.localeCompare(one.at) || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0);
const timeOf = (at: number): string => new Date(Date.UTC(2026, 0, 1) + at).toISOString();
const subject = fc.record({
  at: fc.integer({ min: 0, max: 40 }),
  tags: fc.subarray([...Array(TAGS).keys()]),
  isReadable: fc.boolean(),
});
const subjects = fc
  .array(subject, { maxLength: 400, size: "max" })
  .map((all): readonly Subject[] => all.map(({ at, ...rest }, id) => ({ ...rest, at: timeOf(at), id: `run-${id}` })));

/** The subjects with a tag as a source, which counts the places that were read of it. */
function sourceOf(all: () => readonly Subject[], tag: number, noteRead: (tag: number, places: number) => void): FindSource {
  return {
    having: async (ids) =>
      new Set(
        all()
          .filter(({ id, tags }) => ids.includes(id) && tags.includes(tag))
          .map(({ id }) => id),
      ),
    async read(after, limit, order) {
      const direction = order === "descending" ? 1 : -1;
      const behind = all()
        .filter(({ tags }) => tags.includes(tag))
        .toSorted((one, other) => newestFirst(one, other) * direction)
        .filter((each) => !after || newestFirst(after, each) * direction < 0);
      const places = behind.slice(0, limit).map(({ at, id }) => ({ at, id }));
      noteRead(tag, places.length);
      return { places, isLast: behind.length <= limit };
    },
  };
}

describe("pages of a search", () => {
  it("together have each match exactly once, newest first, with bounded reads per page, while newer subjects are added", async () => {
    await fc.assert(
      fc.asyncProperty(
        subjects,
        fc.integer({ min: 1, max: 30 }),
        fc.subarray([...Array(TAGS).keys()], { minLength: 1 }),
        fc.option(fc.integer({ min: 0, max: 40 })),
        async (all, limit, asked, oldest) => {
          const stored = [...all];
          const notBefore = oldest === null ? undefined : timeOf(oldest);
          const expected = all
            .filter(
              ({ tags, isReadable, at }) => isReadable && asked.every((tag) => tags.includes(tag)) && at >= (notBefore ?? ""),
            )
            .toSorted(newestFirst)
            .map(({ id }) => id);
          const found: string[] = [];
          let after: FindPlace | undefined;
          do {
            const read = new Map<number, number>();
            const noteRead = (tag: number, places: number) => read.set(tag, (read.get(tag) ?? 0) + places);
            const { items, next } = await findPage({
              sources: asked.map((tag) => sourceOf(() => stored, tag, noteRead)),
              load: async (id) => stored.find((each) => each.id === id),
              matches: ({ isReadable, tags }) => isReadable && asked.every((tag) => tags.includes(tag)),
              after,
              notBefore,
              limit,
            });
            expect(items.length).toBeLessThanOrEqual(limit);
            expect(Math.max(...read.values())).toBeLessThanOrEqual(limit + EXAMINED);
            if (next && after) expect(newestFirst(after, next)).toBeLessThan(0);
            found.push(...items.map(({ id }) => id));
            after = next;
            stored.push({ at: timeOf(1000), id: `later-${stored.length}`, tags: asked, isReadable: true });
          } while (after);
          expect(found).toEqual(expected);
        },
      ),
    );
  });

  it("have each match exactly once also from the oldest back to the newest, with those that are added meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(
        subjects,
        fc.integer({ min: 1, max: 30 }),
        fc.subarray([...Array(TAGS).keys()], { minLength: 1 }),
        fc.record({ from: fc.option(fc.integer({ min: 0, max: 40 })), until: fc.option(fc.integer({ min: 0, max: 40 })) }),
        async (all, limit, asked, { from, until: end }) => {
          const stored = [...all];
          const isAsked = ({ tags, isReadable }: Subject) => isReadable && asked.every((tag) => tags.includes(tag));
          const [notBefore, until] = [from, end].map((at) => (at === null ? undefined : timeOf(at)));
          const isWithin = ({ at }: Subject) =>
            (notBefore === undefined || at >= notBefore) && (until === undefined || at < until);
          const read = new Map<number, number>();
          const page = async (place: { after?: FindPlace | undefined; before?: FindPlace | undefined }) => {
            read.clear();
            const found = await findPage({
              sources: asked.map((tag) =>
                sourceOf(
                  () => stored,
                  tag,
                  (of, places) => read.set(of, (read.get(of) ?? 0) + places),
                ),
              ),
              load: async (id) => {
                const found = stored.find((each) => each.id === id)!;
                expect(isWithin(found)).toBe(true);
                return found;
              },
              matches: isAsked,
              ...{ ...place, notBefore, until, limit },
            });
            expect(Math.max(...read.values())).toBeLessThanOrEqual(limit + EXAMINED);
            return found;
          };
          const expected = stored
            .filter((each) => isAsked(each) && isWithin(each))
            .toSorted(newestFirst)
            .map(({ id }) => id);
          const down: string[] = [];
          let last = await page({});
          expect(last.previous).toBeUndefined();
          for (;;) {
            down.push(...last.items.map(({ id }) => id));
            if (!last.next) break;
            last = await page({ after: last.next });
            // The page before this one ends where it begins.
            const beside = await page({ before: last.previous });
            const shown = beside.items.map(({ id }) => id);
            expect(shown).toEqual(shown.length === 0 ? [] : down.slice(-shown.length));
            const again = (await page({ after: beside.next })).items.map(({ id }) => id);
            expect(again).toEqual(expected.slice(down.length, down.length + again.length));
          }
          expect(down).toEqual(expected);

          const up = last.items.map(({ id }) => id);
          for (let before = last.previous; before;) {
            // Newer than all, or between others of the newest time.
            const at = stored.length % 2 === 0 ? timeOf(1000) : timeOf(40);
            stored.push({ at, id: `z-later-${String(stored.length).padStart(4, "0")}`, tags: asked, isReadable: true });
            const { items, previous } = await page({ before });
            up.unshift(...items.map(({ id }) => id));
            before = previous;
          }
          expect(new Set(up).size).toBe(up.length);
          expect(up.filter((id) => !id.startsWith("z-"))).toEqual(down);
          const added = stored.filter((each) => isAsked(each) && isWithin(each) && each.at === timeOf(1000));
          if (last.previous) expect(up).toEqual(expect.arrayContaining(added.map(({ id }) => id)));
        },
      ),
    );
  });

  it("reach a rare match behind many others in one call, in both directions", async () => {
    const all = Array.from({ length: 400 }, (_, at): Subject => ({
      ...{ at: timeOf(at), id: `run-${at}`, isReadable: true },
      tags: at === 0 || at === 399 ? [0, 1] : [0],
    }));
    const page = (place: { after?: FindPlace; before?: FindPlace }) =>
      findPage({
        sources: [0, 1].map((tag) =>
          sourceOf(
            () => all,
            tag,
            () => {},
          ),
        ),
        load: async (id) => all.find((each) => each.id === id),
        matches: ({ tags }) => tags.includes(1),
        ...{ ...place, limit: 1 },
      });
    const newest = await page({});
    const oldest = await page({ after: newest.next! });
    const back = await page({ before: oldest.previous! });
    expect([newest, oldest, back].map(({ items }) => items.map(({ id }) => id))).toEqual([["run-399"], ["run-0"], ["run-399"]]);
    expect([oldest.next, back.previous]).toEqual([undefined, undefined]);
  });

  it("load no subject that its source knows not to match, in the first round and in later ones", async () => {
    const places = Array.from({ length: 60 }, (_, at) => ({ at: timeOf(100 - at), id: `run-${at}`, isOther: at % 2 === 1 }));
    const source: FindSource = {
      having: async (ids) => new Set(ids),
      async read(after, limit) {
        const from = after ? places.findIndex(({ id }) => id === after.id) + 1 : 0;
        return { places: places.slice(from, from + limit), isLast: from + limit >= places.length };
      },
    };
    const loaded: string[] = [];
    const { items, next } = await findPage({
      sources: [source],
      load: async (id) => (loaded.push(id), id),
      matches: () => true,
      limit: 20,
    });
    const matching = places.filter(({ isOther }) => !isOther).map(({ id }) => id);
    expect([items, next?.id]).toEqual([matching.slice(0, 20), "run-38"]);
    expect(loaded).toEqual(matching);
  });
});
