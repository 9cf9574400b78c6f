import type { CallResult, Client } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { RECEIPTS_OFFSET_MAXIMUM } from "@portico/plugins/conversations-runs/client";

type Page = CallResult<typeof conversationsRunsContract.receipts>;
export type Receipt = Page["receipts"][number];

const PAGE = 20;

/** A run's receipts, from the newest back to the last loaded page. Pages count from the newest, so new receipts move the pages. */
export class Receipts {
  /** In the order of writing (specification 4.6). */
  known = $state.raw<readonly Receipt[]>([]);
  total = $state(0);
  /** The number of records that are older than all loaded ones. */
  #left = $state<number>();
  readonly #calls: Client<typeof conversationsRunsContract>;
  readonly #runId: string;

  constructor(calls: Client<typeof conversationsRunsContract>, runId: string) {
    this.#calls = calls;
    this.#runId = runId;
  }

  get left(): number {
    return this.#left ?? 0;
  }

  /** The number of loaded records that are damaged or too large to show. */
  get skipped(): number {
    return Math.max(this.total - this.left - this.known.length, 0);
  }

  /** Whether a next page can be loaded. No page starts after the limit. */
  get hasMore(): boolean {
    return this.left > 0 && this.total - this.left <= RECEIPTS_OFFSET_MAXIMUM;
  }

  /** Load new receipts. */
  async refresh(signal: AbortSignal): Promise<void> {
    const page = await this.#page(0, signal);
    const ids = new Set(this.known.map(({ receipt_id }) => receipt_id));
    const next = page.receipts.filter(({ receipt_id }) => !ids.has(receipt_id));
    const behind = Math.max(page.total - PAGE, 0);
    // More new receipts than one page: the others are loaded like older ones.
    const isBroken = behind > this.total;
    this.known = isBroken ? page.receipts : [...this.known, ...next];
    this.#left = isBroken || this.#left === undefined ? behind : this.#left;
    this.total = page.total;
  }

  /** Load the next older page. */
  async older(signal: AbortSignal): Promise<void> {
    const offset = this.total - this.left;
    const page = await this.#page(offset, signal);
    const ids = new Set(this.known.map(({ receipt_id }) => receipt_id));
    this.known = [...page.receipts.filter(({ receipt_id }) => !ids.has(receipt_id)), ...this.known];
    this.#left = Math.max(page.total - page.offset - page.limit, 0);
    this.total = page.total;
  }

  async #page(offset: number, signal: AbortSignal) {
    const query = { offset: `${offset}`, limit: `${PAGE}` };
    const page = await this.#calls.receipts({ params: { id: this.#runId }, query, signal });
    // With either parameter, the response contains all of these.
    const { receipts, total = receipts.length, limit = PAGE } = page;
    return { receipts, total, offset: page.offset ?? offset, limit };
  }
}
