import type { Collection, Query, Records, Stored, Write } from "../ports/records.ts";
import { type FindPlace, findPage, type FindSource, type FoundPage, readFindCursor, toFindCursor, wordsOf } from "./find-page.ts";
import { RUN_SEARCH } from "./run-search.ts";
import { readPages, writeAgain } from "./store-calls.ts";
import { createTagIndex, type Tagged } from "./tag-index.ts";

/** One criterion of a search for runs. */
export interface RunCriterion<Run, Value> {
  /** The value of a run. */
  of(run: Run): Value | undefined;
  /** Whether the value of a run matches the value of a search. By default, both must be equal. */
  includes?(found: Value, wanted: Value): boolean;
  /** The field of a run's key that holds the value. The list of keys then finds the runs with a value. */
  readonly key?: string;
  /** The tags of a value. The lists of these tags contain all runs with the value. */
  tags?(value: Value): readonly string[];
}

/** The criteria of a search, by name. A cheap criterion stands before an expensive one: they are checked in this order. */
export type RunCriteria<Run, Values> = { readonly [Name in keyof Values]-?: RunCriterion<Run, NonNullable<Values[Name]>> };

/** What a search asks. All of it must match. */
export type RunSearch<Values> = Partial<Values> & {
  /** Begun at this time or later, and before that time (ISO 8601 in UTC, with milliseconds). */
  readonly from?: string | undefined;
  readonly before?: string | undefined;
};

/** How the runs of an area are stored and found. */
export interface RunIndexSpec<Run extends object, Key extends object, Values> {
  /** The collections of the runs, of their keys, of their tags, and of notes of removed runs. */
  readonly collections: { readonly runs: string; readonly keys: string; readonly tags: string; readonly removed: string };
  /** The indexes of the keys. The last field of each is the time. */
  readonly indexes: Readonly<Record<string, readonly string[]>>;
  /** The field of a key with the time at which the run began (ISO 8601). It never changes. */
  readonly time: keyof Key & string;
  /** The field of a key whose value owns the run. A list of a tag has the runs of one owner, or of all. */
  readonly owner: keyof Key & string;
  /** The ID of a run. */
  idOf(run: Run): string;
  /** The key of a run. It is written when the run begins, so that later changes of the run touch no index of keys. */
  keyOf(run: Run): Key;
  /** False for a run that no search finds. */
  isFound?(run: Run): boolean;
  /** The criteria of searches. */
  readonly criteria: RunCriteria<Run, Values>;
}

/** Runs of one page. */
const PAGE = 200;
/** Removed runs whose data is removed at a time. */
const REMOVED = 50;

/**
 * Open the runs of an area: each with a key, by which runs are listed in the order of their beginnings, and with tags, by which they are found.
 * Functions throw RecordsUnavailable.
 */
export function createRunIndex<Run extends object, Key extends object, Values>(
  records: Records,
  spec: RunIndexSpec<Run, Key, Values>,
) {
  const { collections, indexes, time, owner, idOf, keyOf, isFound = () => true } = spec;
  const runs = records.collection<Run>({ name: collections.runs });
  const keys = records.collection<Key>({ name: collections.keys, indexes });
  const tags = createTagIndex(records, collections.tags);
  const removed = records.collection<object>({ name: collections.removed });
  const criteria = Object.entries(spec.criteria) as (readonly [name: string, RunCriterion<Run, unknown>])[];
  const indexed = new Set(Object.values(indexes).map((fields) => setOf(fields.slice(0, -1))));

  const tagged = (run: Run): Tagged => {
    const key = keyOf(run) as Readonly<Record<string, string>>;
    const found = isFound(run) ? criteria.flatMap(([, each]) => tagsOf(each, each.of(run))) : [];
    return { id: idOf(run), owner: key[owner]!, at: key[time]!, tags: found };
  };
  const retagged = (before: Run | undefined, after: Run | undefined): readonly Write[] =>
    tags.changes(before && tagged(before), after && tagged(after));
  const replace = ({ id, version, value }: Stored<Run>, run: Run): readonly Write[] => [
    runs.write.put(id, run, version),
    ...retagged(value, run),
  ];
  const loaded = async (ids: readonly string[]): Promise<readonly Run[]> =>
    (await Promise.all(ids.map((id) => runs.get(id)))).flatMap((run) => (run ? [run.value] : []));

  /** The keys with these values, and which of them lack the other `wanted` values. */
  const keysWith = (where: KeyValues, wanted: KeyValues): FindSource => {
    const isOther = (key: Key): boolean => Object.entries(wanted).some(([name, value]) => key[name as keyof Key] !== value);
    return {
      async read(after, limit, direction) {
        const asked: Query = {
          where,
          order: { by: time, direction },
          limit,
          ...(after && { after: { value: after.at, id: after.id } }),
        };
        if (Object.keys(wanted).every((name) => Object.hasOwn(where, name))) {
          const { places, isLast } = await keys.places(asked);
          return { places: places.map(({ id, value }) => ({ at: String(value), id })), isLast };
        }
        const { items, next } = await keys.query(asked);
        const places = items.map(({ id, value }) => ({ at: String(value[time]), id, isOther: isOther(value) }));
        return { places, isLast: next === undefined };
      },
      async having(ids) {
        const found = await Promise.all(ids.map((id) => keys.get(id)));
        return new Set(ids.filter((_, at) => found[at] && !isOther(found[at].value)));
      },
    };
  };
  /**
   * The lists of keys that a search reads. The lists of tags are lists of the owner already. Without an index of all values, each value has its
   * own list: which of them is shorter is not known before.
   */
  const keyLists = (wanted: KeyValues, isTagged: boolean): readonly FindSource[] => {
    const names = Object.keys(wanted).filter((name) => !isTagged || name !== owner);
    if (isTagged && names.length === 0) return [];
    if (indexed.has(setOf(Object.keys(wanted)))) return [keysWith(wanted, wanted)];
    return names.map((name) => keysWith({ [name]: wanted[name]! }, wanted));
  };

  return {
    /** For lists of an area's own. */
    keys: keys as Pick<Collection<Key>, "query">,
    find: (runId: string): Promise<Stored<Run> | undefined> => runs.get(runId),
    /** Those of the runs that exist. */
    loaded,
    /** The writes that begin a run. */
    begin: (run: Run): readonly Write[] => [
      runs.write.put(idOf(run), run, "absent"),
      keys.write.put(idOf(run), keyOf(run)),
      ...retagged(undefined, run),
    ],
    /** The writes that replace the record that was read. */
    replace,
    /** The writes that replace the record that was read, and remove the run from all lists. */
    unlist: (read: Stored<Run>, run: Run): readonly Write[] => [
      runs.write.put(read.id, run, read.version),
      keys.write.remove(read.id),
      ...retagged(read.value, undefined),
    ],
    /** The writes that remove the run that was read, and note that its other data may still be there. */
    remove: (read: Stored<Run>, note: object = {}): readonly Write[] => [
      runs.write.remove(read.id, read.version),
      keys.write.remove(read.id),
      removed.write.put(read.id, note),
      ...retagged(read.value, undefined),
    ],
    /** The write that notes that data of this id is removed. */
    noteRemoval: removed.write.put,
    /** Removes a note. */
    forget: (id: string): Promise<boolean> => removed.remove(id),
    /** Removes the other data of removed runs, page by page, and then their notes. A kill in between leaves the notes. */
    async finishRemovals(removeData: (notes: readonly Stored<object>[]) => Promise<void>, signal: AbortSignal): Promise<void> {
      for await (const notes of readPages(removed, { limit: REMOVED })) {
        if (signal.aborted) return;
        await removeData(notes);
        await records.batch(notes.map(({ id }) => removed.write.remove(id)));
      }
    },
    /** Change a run, unless `change` returns undefined. Safe with concurrent writers. `more`: further writes. Undefined without a change. */
    change: (
      runId: string,
      change: (run: Run) => Run | undefined,
      more: (changed: Run) => readonly Write[] | Promise<readonly Write[]> = () => [],
    ): Promise<Run | undefined> =>
      writeAgain(async () => {
        const read = await runs.get(runId);
        const changed = read && change(read.value);
        if (changed) await records.batch([...replace(read, changed), ...(await more(changed))]);
        return changed;
      }),
    /** The newest runs that have all these values, in pages, until `limit` or the end. */
    async *newest(where: KeyValues, limit: number = Number.POSITIVE_INFINITY): AsyncGenerator<readonly Run[], void> {
      let left = limit;
      const query = { where, order: { by: time, direction: "descending" }, limit: Math.min(left, PAGE) } as const;
      for await (const items of readPages(keys, query)) {
        yield loaded(items.slice(0, left).map(({ id }) => id));
        left -= items.length;
        if (left <= 0) return;
      }
    },
    /** Ids of listed runs that began before this time (ISO 8601), the oldest first, in pages. */
    async *oldest(before: string): AsyncGenerator<readonly string[], void> {
      for await (const items of readPages(keys, { order: { by: time, direction: "ascending" } })) {
        const found = items.filter(({ value }) => String(value[time]) < before);
        yield found.map(({ id }) => id);
        if (found.length < items.length) return;
      }
    },
    /** All runs whose ids are before this one, also those that no list has, in pages. */
    async *before(end: string, limit?: number): AsyncGenerator<readonly Run[], void> {
      for await (const items of readPages(runs, limit === undefined ? {} : { limit })) {
        const found = items.filter(({ id }) => id < end);
        yield found.map(({ value }) => value);
        if (found.length < items.length) return;
      }
    },
    /** Ids of the runs of an owner with a tag, the oldest first, in pages. The runs may have changed since their tags were written. */
    async *withTag(tag: string, ownedBy: string): AsyncGenerator<readonly string[], void> {
      const list = tags.list(tag, ownedBy);
      for (let after: FindPlace | undefined; ;) {
        const { places, isLast } = await list.read(after, PAGE, "ascending");
        yield places.map(({ id }) => id);
        after = places.at(-1);
        if (isLast || !after) return;
      }
    },
    /** The newest runs that match all of a search, behind or before a place. The work is bounded: a page may end early (`findPage`). */
    search(
      search: RunSearch<Values>,
      {
        isReadable = () => true,
        ...page
      }: {
        readonly after?: FindPlace | undefined;
        readonly before?: FindPlace | undefined;
        readonly limit: number;
        isReadable?(run: Run): boolean;
      },
    ): Promise<FoundPage<Run>> {
      const { from, before } = search;
      const isTimed = from !== undefined || before !== undefined;
      const isWithin = (at: string) => (from === undefined || at >= from) && (before === undefined || at < before);
      const asked = criteria.flatMap(([name, { includes = isSame, ...each }]) => {
        const wanted: unknown = search[name as keyof Values];
        return wanted === undefined ? [] : [{ ...each, includes, wanted }];
      });
      const wanted = Object.fromEntries(
        asked.flatMap((each) => (each.key === undefined ? [] : [[each.key, each.wanted as string]])),
      );
      const ownedBy = wanted[owner];
      const lists = asked.flatMap((each) => tagsOf(each, each.wanted)).map((tag) => tags.list(tag, ownedBy));
      return findPage({
        sources: [...lists, ...keyLists(wanted, lists.length > 0)],
        load: async (runId) => (await runs.get(runId))?.value,
        // A list may be older than the run.
        matches: (run) =>
          isFound(run) &&
          (!isTimed || isWithin(String(keyOf(run)[time]))) &&
          asked.every(({ of, includes, wanted: value }) => {
            const found = of(run);
            return found !== undefined && includes(found, value);
          }) &&
          isReadable(run),
        ...page,
        notBefore: from,
        until: before,
      });
    },
  };
}

type KeyValues = Readonly<Record<string, string>>;

const isSame = (found: unknown, wanted: unknown): boolean => found === wanted;

const setOf = (names: readonly string[]): string => [...names].sort().join(" ");

function tagsOf<Run>({ tags }: RunCriterion<Run, unknown>, value: unknown): readonly string[] {
  return value === undefined || !tags ? [] : tags(value);
}

/** The criterion of words, in any order, that are among the words of a run's texts. `most`: how many words of a text are looked at. */
export function wordCriterion<Run>(
  textsOf: (run: Run) => readonly (readonly [text: string, most: number])[],
): RunCriterion<Run, readonly string[]> {
  // Most changes of a run keep its texts, which are then read once.
  let last: { readonly texts: ReturnType<typeof textsOf>; readonly words: readonly string[] } = { texts: [], words: [] };
  return {
    of(run) {
      const texts = textsOf(run);
      const isKnown = texts.length === last.texts.length && texts.every(([text], at) => text === last.texts[at]![0]);
      if (!isKnown) last = { texts, words: [...new Set(texts.flatMap(([text, most]) => wordsOf(text, most)))] };
      return last.words;
    },
    includes: (found, wanted) => wanted.every((word) => found.includes(word)),
    tags: (words) => words.map((word) => `w:${word}`),
  };
}

/** The words of a search, if it has 1-8. Undefined for other texts. */
export function readSearchWords(text: string): readonly string[] | undefined {
  const words = wordsOf(text, RUN_SEARCH.words + 1);
  return words.length > 0 && words.length <= RUN_SEARCH.words ? words : undefined;
}

/**
 * What a search asks, as a text that is equal for equal searches. Without the oldest time: the pages of "the last hour" are the same search,
 * although each has another oldest time.
 */
function askedOf({ from: _from, ...search }: { readonly from?: string | undefined }): string {
  return JSON.stringify(sorted(search));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.toSorted();
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return entries.map(([name, each]) => [name, sorted(each)] as const).sort(([one], [other]) => (one < other ? -1 : 1));
}

/** A cursor that is not of a page of the same search. The message begins with the parameter. */
export class RunCursorInvalid extends Error {
  override readonly name = "RunCursorInvalid";
}

/**
 * The place that a page of a search begins at. `names`: the parameters of both cursors. `open` takes the seal from a cursor, and returns
 * undefined for an invalid one. Throws RunCursorInvalid.
 */
export async function readRunCursors<Values>(
  search: RunSearch<Values>,
  given: { readonly after: string | undefined; readonly before: string | undefined },
  {
    names,
    open = (cursor) => cursor,
  }: {
    readonly names: readonly [after: string, before: string];
    open?(cursor: string): string | undefined | Promise<string | undefined>;
  },
): Promise<{ readonly after: FindPlace | undefined; readonly before: FindPlace | undefined }> {
  const read = async (cursor: string | undefined, name: string, source: string) => {
    const opened = cursor === undefined ? undefined : await open(cursor);
    const place = opened === undefined ? undefined : readFindCursor(askedOf(search), opened);
    if (cursor !== undefined && !place) throw new RunCursorInvalid(`${name} must be the ${source} of a page of the same search`);
    return place;
  };
  const after = await read(given.after, names[0], "next");
  const before = await read(given.before, names[1], "previous");
  if (after && before) throw new RunCursorInvalid(`give ${names.join(" or ")}, not both`);
  return { after, before };
}

/** The cursors of the pages beside a page. `seal` hides what they say. */
export async function writeRunCursors<Values>(
  search: RunSearch<Values>,
  { next, previous }: Pick<FoundPage<unknown>, "next" | "previous">,
  seal: (cursor: string) => string | Promise<string> = (cursor) => cursor,
): Promise<{ readonly next?: string; readonly previous?: string }> {
  const write = (place: FindPlace) => seal(toFindCursor(askedOf(search), place));
  return { ...(next && { next: await write(next) }), ...(previous && { previous: await write(previous) }) };
}
