import { type FindSource, type ports, readPages } from "@portico/core";

/**
 * The keys by which runs are found. Written when a run begins and removed when its conversation is cleared, so that turns do not touch its
 * indexes.
 */
export interface RunKey {
  readonly user_id: string;
  readonly agent_id: string;
  readonly started_at: string;
  /** `delegation.fromAgentId` and `delegation.parentRunId`. */
  readonly delegated_by?: string | undefined;
  readonly parent_run_id?: string | undefined;
}

/** Any set of these may be asked for, all at once (specification 4.6). */
export type RunFilters = Partial<Pick<RunKey, (typeof FILTERS)[number]>>;

const FILTERS = ["user_id", "agent_id", "delegated_by", "parent_run_id"] as const;
const PAGE = 1000;

/** Runs in the order of their beginnings. Every set of filters has an index of its own, so that no list reads more than it shows. */
export function createRunList(records: ports.Records) {
  const collection = records.collection<RunKey>({ name: "run-list", indexes: indexesOf(FILTERS) });
  return {
    write: collection.write,
    /** Runs that began before this time (ISO 8601), of one user or of all, the oldest first, in pages. */
    async *oldest({ userId, before }: { readonly userId?: string | undefined; readonly before?: string | undefined }) {
      const order = { by: "started_at", direction: "ascending" } as const;
      for await (const items of readPages(collection, { order, ...(userId !== undefined && { where: { user_id: userId } }) })) {
        const found = items.filter(({ value }) => before === undefined || value.started_at < before);
        yield found.map(({ id }) => id);
        if (found.length < items.length) return;
      }
    },
    /** The runs that have all these values, to be found. */
    source: (filters: RunFilters): FindSource => ({
      async read(after, limit, direction) {
        const { places, isLast } = await collection.places({
          where: filters as Readonly<Record<string, string>>,
          order: { by: "started_at", direction },
          limit,
          ...(after && { after: { value: after.at, id: after.id } }),
        });
        return { places: places.map(({ id, value }) => ({ at: String(value), id })), isLast };
      },
      async having(ids) {
        const found = await Promise.all(ids.map((id) => collection.get(id)));
        const isWanted = (key: RunKey) => Object.entries(filters).every(([name, value]) => key[name as keyof RunKey] === value);
        return new Set(ids.filter((_, at) => found[at] && isWanted(found[at].value)));
      },
    }),
    /** Ids of the newest runs that have all these values; pages of at most 1,000, until `limit` or the end. */
    async *newest(filters: RunFilters, limit: number): AsyncIterable<readonly string[]> {
      let [after, left]: [string | undefined, number] = [undefined, limit];
      do {
        const page: ports.Page<RunKey> = await collection.query({
          where: filters as Readonly<Record<string, string>>,
          order: { by: "started_at", direction: "descending" },
          limit: Math.min(left, PAGE),
          ...(after !== undefined && { after }),
        });
        yield page.items.map(({ id }) => id);
        left -= page.items.length;
        after = page.next;
      } while (after !== undefined && left > 0);
    },
  };
}

function indexesOf(fields: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const sets = fields.reduce<string[][]>((all, field) => [...all, ...all.map((set) => [...set, field])], [[]]);
  return Object.fromEntries(sets.map((set) => [`by_${set.join("_and_")}`, [...set, "started_at"]]));
}
