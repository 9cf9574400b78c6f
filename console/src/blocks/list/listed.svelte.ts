import { type Loaded, loaded } from "../../api/loaded.svelte.ts";
import { replaceRoute } from "../../shell/route.svelte.ts";
import type { ListAddress } from "./list-address.svelte.ts";
import { type Place, readPage, type RowPage } from "./read-page.ts";

/** A page as it was asked for. */
export interface ListedPage<Row> extends RowPage<Row> {
  /** The filters, and with the place. */
  readonly filters: string;
  readonly asked: string;
}

/** The page of the address, read again every `everyMs`. `ask` reads the filters of the address before its first `await`. */
export function listed<Row>(
  address: ListAddress,
  ask: (place: Place, limit: number, signal: AbortSignal) => Promise<RowPage<Row>>,
  everyMs: number,
): Loaded<ListedPage<Row>> {
  let last: { readonly page: ListedPage<Row>; readonly at: number } | undefined;
  return loaded(async (signal) => {
    const { place, asked, filters } = address;
    // A page that needs many calls, because few of many rows match, is read again less often.
    if (last?.page.asked === asked && Date.now() - last.at < ((last.page.calls ?? 1) - 1) * everyMs) return last.page;
    last = undefined;
    const page = await readPage((at, limit) => ask(at, limit, signal), place);
    // The newest rows are a page that grows: it has an address of its own, and is whole there.
    if (place.before !== undefined && page.previous === undefined && !signal.aborted) replaceRoute(address.to({}));
    last = { page: { ...page, asked, filters }, at: Date.now() };
    return last.page;
  }, everyMs);
}
