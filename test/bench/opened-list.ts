import { readPage, type RowPage } from "../../console/src/blocks/list/read-page.ts";

/** What a list of the console asks for one call. */
export type AskPage = (query: string) => Promise<RowPage<unknown> & { readonly ms: number }>;

const CALLS = 200;
/** Pages that are read one after another, to older runs and back. */
const PAGES = 100;

/** Milliseconds. `first`: of the first time, in a process that has just been started. */
export interface OpenedList {
  readonly name: string;
  readonly first: number;
  readonly p50: number;
  readonly p99: number;
  /** Calls of one page, and its rows. */
  readonly calls: number;
  readonly rows: number;
}

/**
 * How long the service takes for a page of 50 rows, as the console reads it: with all calls that it makes for the page. `lists`: queries without
 * a place, by name. `after`: the parameter of the next page.
 */
export async function measureLists(
  ask: AskPage,
  lists: readonly (readonly [query: string, name: string])[],
  after: "after" | "cursor",
): Promise<readonly OpenedList[]> {
  const open = async (query: string, place: { readonly after?: string; readonly before?: string } = {}) => {
    let [ms, calls] = [0, 0];
    const page = await readPage(async (at, limit) => {
      const given = new URLSearchParams(query);
      given.set("limit", String(limit));
      if (at.after !== undefined) given.set(after, at.after);
      if (at.before !== undefined) given.set("before", at.before);
      const answer = await ask(given.toString());
      ms += answer.ms;
      calls++;
      return answer;
    }, place);
    return { ms, calls, page };
  };
  const measured: OpenedList[] = [];
  const note = (name: string, opened: readonly Awaited<ReturnType<typeof open>>[]) => {
    const times = opened.map(({ ms }) => ms).sort((one, other) => one - other);
    const { calls, page } = opened[0]!;
    const quantile = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))]!;
    measured.push({ name, first: opened[0]!.ms, p50: quantile(0.5), p99: quantile(0.99), calls, rows: page.rows.length });
  };
  for (const [query, name] of lists) {
    const opened = [];
    for (let call = 0; call < CALLS; call++) opened.push(await open(query));
    note(name, opened);
  }
  const [query] = lists[0]!;
  const older = [await open(query)];
  while (older.length < PAGES && older.at(-1)!.page.next !== undefined)
    older.push(await open(query, { after: older.at(-1)!.page.next! }));
  note(`${older.length} pages, each older than the one before`, older);
  const newer = [older.at(-1)!];
  while (newer.at(-1)!.page.previous !== undefined) newer.push(await open(query, { before: newer.at(-1)!.page.previous! }));
  note("the same pages back to the newest", newer.slice(1));
  return measured;
}

/** The rows of the report. */
export function printLists(size: number, lists: readonly OpenedList[]): void {
  console.log(`\n${size} runs: a page of 50, ms | first | p50 | p99 | calls | rows`);
  for (const { name, first, p50, p99, calls, rows } of lists)
    console.log(`${name} | ${[first, p50, p99].map((ms) => ms.toFixed(2)).join(" | ")} | ${calls} | ${rows}`);
}
