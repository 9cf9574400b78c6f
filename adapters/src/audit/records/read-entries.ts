import { ports } from "@portico/core";
import { readAuditCursor, toAuditCursor } from "./audit-cursor.ts";

/** An entry as it is stored: under its id. */
export interface StoredEntry extends Omit<ports.AuditEntry, "id"> {
  /** The day of `at`, as `2030-12-31`. Indexes find entries of a day; stores have no queries for ranges. */
  readonly day: string;
}

const DAY_MS = 24 * 60 * 60_000;
/** Days that one page looks at. Limits its time if entries are rare. */
const MOST_DAYS = 400;
/** Queries of one page that looks for few of many entries. */
const MOST_QUERIES = 40;
/** Entries of each of these queries, also for a short page. */
const LEAST_SEARCHED = 100;

/** Entries, the newest first: day by day, from the last day of the query to the first. */
export async function readEntries(
  entries: ports.Collection<StoredEntry>,
  { since, until, action, userId, object, address, limit = 100, after }: ports.AuditQuery,
): Promise<ports.AuditPage> {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000) throw new RangeError("A page has 1-1000 entries");
  const [from, to] = [since, until].map((ms) => (ms === undefined ? undefined : new Date(ms).toISOString()));
  const [newest, oldest] = await Promise.all([endOf(entries, "descending"), endOf(entries, "ascending")]);
  if (!newest || !oldest) return { items: [], next: undefined };
  const firstDay = later(from && dayOf(from), oldest.day);
  let place = after === undefined ? { day: earlier(to && dayOf(to), newest.day) } : readAuditCursor(after);
  const items: ports.AuditEntry[] = [];
  const isSearch = userId !== undefined || object !== undefined || address !== undefined;
  const start = address?.toLowerCase();
  const isWanted = ({ object: id = "", who, at }: StoredEntry) =>
    // Of the last day, entries after `until` are passed over.
    (to === undefined || at < to) &&
    (userId === undefined || who.userId === userId) &&
    (object === undefined || id.includes(object)) &&
    (start === undefined || who.address?.toLowerCase().startsWith(start) === true);
  for (let days = 0, queries = 0; days < MOST_DAYS; queries++) {
    // A search asks for at least half a page, so that the end of a page takes no query for each entry.
    if (isSearch && (queries === MOST_QUERIES || items.length * 2 > limit)) break;
    if (place.day < firstDay) return { items, next: undefined };
    const missing = limit - items.length;
    let page = await pageOf(entries, place, { action, limit: isSearch ? Math.max(missing, LEAST_SEARCHED) : missing });
    const last = page.items.flatMap(({ value }, at) => (isWanted(value) ? [at] : []))[missing - 1];
    // Only the store can continue at an entry, and only at the last one of a query.
    if (last !== undefined && last + 1 < page.items.length) page = await pageOf(entries, place, { action, limit: last + 1 });
    for (const { id, value } of page.items) {
      const { day: _day, ...entry } = value;
      if (from !== undefined && entry.at < from) return { items, next: undefined };
      if (isWanted(value)) items.push({ id, ...entry });
    }
    if (page.next === undefined) days++;
    place = page.next === undefined ? { day: dayBefore(place.day) } : { day: place.day, after: page.next };
    if (items.length === limit) break;
  }
  return { items, next: place.day < firstDay ? undefined : toAuditCursor(place) };
}

/** The day of a time in ISO 8601. */
export function dayOf(at: string): string {
  return at.slice(0, 10);
}

async function pageOf(
  entries: ports.Collection<StoredEntry>,
  { day, after }: { readonly day: string; readonly after?: string | undefined },
  { action, limit }: { readonly action?: string | undefined; readonly limit: number },
) {
  const where: Record<string, string> = action === undefined ? { day } : { action, day };
  try {
    return await entries.query({
      where,
      order: { by: "at", direction: "descending" },
      limit,
      ...(after !== undefined && { after }),
    });
  } catch (cause) {
    if (!(cause instanceof ports.RecordCursorInvalid)) throw cause;
    throw new ports.AuditCursorInvalid("This is not a cursor of this query", { cause });
  }
}

async function endOf(entries: ports.Collection<StoredEntry>, direction: "ascending" | "descending") {
  const { items } = await entries.query({ order: { by: "at", direction }, limit: 1 });
  return items[0]?.value;
}

function dayBefore(day: string): string {
  return dayOf(new Date(Date.parse(day) - DAY_MS).toISOString());
}

function later(one: string | undefined, other: string): string {
  return one !== undefined && one > other ? one : other;
}

function earlier(one: string | undefined, other: string): string {
  return one !== undefined && one < other ? one : other;
}
