/** Without input of the user, and without changed data, a visible page is idle after this time. */
const IDLE_AFTER_MS = 60_000;
/** The requests of an idle page are this far apart: three in a minute, whatever it shows. */
const IDLE_REQUEST_MS = 20_000;
/** However many requests were sent, an idle page reads again after this time. */
const LONGEST_MS = 3 * 60_000;
const LOOK_MS = 5_000;

/** Data that a page reads again and again. */
export interface Paced {
  /** Also while the page is hidden. */
  readonly whileHidden: boolean;
  /** Whether it is to be read now. */
  isDue(): boolean;
  /** Never rejects. */
  refresh(): Promise<void>;
}

/**
 * How often the page asks the service. While the user works, or data changes, each data keeps its own interval. An idle or hidden page reads one
 * after the other, the oldest first, with a limit for all of its requests.
 */
class PagePace {
  #activeAt = Date.now();
  #nextAt = 0;
  /** When each data was read last. */
  readonly #paced = new Map<Paced, number>();

  constructor() {
    for (const name of ["pointerdown", "keydown", "wheel", "touchmove", "focus", "hashchange"])
      addEventListener(name, () => this.#woken(), { passive: true, capture: true });
    document.addEventListener("visibilitychange", () => document.hidden || this.#woken());
    setInterval(() => this.#look(), LOOK_MS);
  }

  get isIdle(): boolean {
    return document.hidden || Date.now() - this.#activeAt > IDLE_AFTER_MS;
  }

  /** Reads data at the pace of the page, until the returned function is called. */
  add(paced: Paced): () => void {
    this.#paced.set(paced, Date.now());
    return () => this.#paced.delete(paced);
  }

  /** Data has been read. If it has changed, more may follow. */
  read(paced: Paced, hasChanged: boolean): void {
    if (this.#paced.has(paced)) this.#paced.set(paced, Date.now());
    if (hasChanged) this.changed();
  }

  /** Something has changed at the service. */
  changed(): void {
    this.#activeAt = Date.now();
  }

  /** A request is sent. Every request of an idle page counts. Those of a page in use do not: they would keep it from reading for long. */
  requested(): void {
    const now = Date.now();
    const from = this.isIdle ? Math.max(this.#nextAt, now) : now;
    this.#nextAt = Math.min(from + IDLE_REQUEST_MS, now + LONGEST_MS);
  }

  /** What an idle page shows may be old: it is read at once when the user is back. */
  #woken(): void {
    const wasIdle = Date.now() - this.#activeAt > IDLE_AFTER_MS;
    this.#activeAt = Date.now();
    this.#nextAt = 0;
    if (wasIdle) for (const paced of this.#paced.keys()) if (paced.isDue()) void paced.refresh();
  }

  #look(): void {
    const now = Date.now();
    if (!this.isIdle || now < this.#nextAt) return;
    const due = [...this.#paced].filter(([paced]) => (paced.whileHidden || !document.hidden) && paced.isDue());
    const [oldest] = due.toSorted(([, a], [, b]) => a - b);
    if (!oldest) return;
    const [paced] = oldest;
    this.#paced.set(paced, now);
    void paced.refresh();
  }
}

/** The pace of this page. */
export const pagePace = new PagePace();
