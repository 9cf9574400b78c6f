import type { CallResult, Client } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { RECEIPTS_OFFSET_MAXIMUM } from "@portico/plugins/conversations-runs/limits";

type Page = CallResult<typeof conversationsRunsContract.receipts>;
export type Receipt = Page["receipts"][number];

const PAGE = 20;

/** A run's receipts from the newest back to the one that was asked for last. Pages count from the newest: what is written meanwhile moves them. */
export class Receipts {
  /** In the order in which they were written (specification 4.6). */
  known = $state.raw<readonly Receipt[]>([]);
  total = $state(0);
  /** Records that are older than all that were looked at. */
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

  /** Records among those that were looked at which are damaged or too large to be shown. */
  get skipped(): number {
    return Math.max(this.total - this.left - this.known.length, 0);
  }

  /** Whether a next page can be asked for: none begins behind the cap. */
  get hasMore(): boolean {
    return this.left > 0 && this.total - this.left <= RECEIPTS_OFFSET_MAXIMUM;
  }

  /** What came since. */
  async refresh(signal: AbortSignal): Promise<void> {
    const page = await this.#page(0, signal);
    const ids = new Set(this.known.map(({ receipt_id }) => receipt_id));
    const next = page.receipts.filter(({ receipt_id }) => !ids.has(receipt_id));
    const behind = Math.max(page.total - PAGE, 0);
    // More came than one page shows: what is between is asked for like older ones.
    const isBroken = behind > this.total;
    this.known = isBroken ? page.receipts : [...this.known, ...next];
    this.#left = isBroken || this.#left === undefined ? behind : this.#left;
    this.total = page.total;
  }

  /** One page further back. */
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
    // With either parameter given, the answer says all of these.
    const { receipts, total = receipts.length, limit = PAGE } = page;
    return { receipts, total, offset: page.offset ?? offset, limit };
  }
}
