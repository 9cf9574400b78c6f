/** Where a page of a list begins: `after` a cursor with the next older rows, `before` one with the next newer rows, or at the newest. */
export interface Place {
  readonly after?: string;
  readonly before?: string;
}

/** Rows, newest first, and the cursors of the pages beside them. */
export interface RowPage<Row> {
  readonly rows: readonly Row[];
  /** `after` of the page with older rows, and `before` of the page with newer rows. Absent at the end, and on the newest page. */
  readonly next?: string | undefined;
  readonly previous?: string | undefined;
  /** The calls that it took. */
  readonly calls?: number | undefined;
}

/** Rows of a page. The document never has more, however long the list is. */
export const ROWS = 50;
/** Calls for one page. Each looks at a bounded number of rows, so that a search for few of many needs several. */
const MOST_CALLS = 20;

/** One page of a list. It has fewer rows than a full page, or none, only at an end of the list, or if few rows match. */
export async function readPage<Row>(
  ask: (place: Place, limit: number) => Promise<RowPage<Row>>,
  place: Place,
): Promise<RowPage<Row>> {
  const isBack = place.before !== undefined;
  let rows: readonly Row[] = [];
  let at = place;
  let beside: string | undefined;
  for (let call = 1; ; call++) {
    const page = await ask(at, ROWS - rows.length);
    rows = isBack ? [...page.rows, ...rows] : [...rows, ...page.rows];
    if (call === 1) beside = isBack ? page.next : page.previous;
    const further = isBack ? page.previous : page.next;
    if (further === undefined || rows.length >= ROWS || call >= MOST_CALLS)
      return { rows, calls: call, next: isBack ? beside : further, previous: isBack ? further : beside };
    at = isBack ? { before: further } : { after: further };
  }
}
