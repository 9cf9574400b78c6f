import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Job, Worker, type WorkerOptions } from "bullmq";
import type { Redis } from "ioredis";
import type { OfferConsumer } from "../cluster/dispatcher.ts";
import type { Offer } from "../cluster/work-row.ts";
import { type JobData, queueNameOf } from "./offer-job.ts";

/** The dependencies of the loop of one kind. */
export interface JobLoopGiven {
  readonly kind: string;
  readonly consumer: OfferConsumer;
  readonly fetching: Redis;
  readonly options: Pick<WorkerOptions, "prefix" | "skipVersionCheck">;
  /** A job has another form. */
  refuse(): void;
  /** Add offers again, before all others, after their job has ended. */
  handBack(offers: readonly Offer[]): Promise<void>;
}

/** How long a fetch waits for a job. */
const WAIT_SECONDS = 5;
/** A job ends as soon as it was taken. If a process dies between the two, BullMQ gives the job to another one after this time. */
const STALLED_MS = 5000;
const RETRY_MS = 200;

/**
 * Fetches jobs of one kind while there is room. BullMQ's own loop is not used, because it does not notice new room while it waits, and a
 * job would have to last as long as its work.
 */
export class JobLoop {
  readonly #given: JobLoopGiven;
  readonly #worker: Worker<JobData>;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #closed: Promise<void> | undefined;
  #isIdle = true;
  /** Counts what this process offered. */
  #offers = 0;
  #wake = (): void => {};

  constructor(given: JobLoopGiven) {
    this.#given = given;
    this.#worker = new Worker<JobData>(queueNameOf(given.kind), null, {
      ...given.options,
      connection: given.fetching,
      autorun: false,
      drainDelay: WAIT_SECONDS,
      lockDuration: STALLED_MS,
      stalledInterval: STALLED_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER,
    });
    this.#worker.on("error", () => {});
    void this.#worker.startStalledCheckTimer().catch(() => {});
    this.#running = this.#run();
  }

  /** Whether the last fetch found nothing, and this process has offered nothing since. */
  get isIdle(): boolean {
    return this.#isIdle;
  }

  /** This process offers work of the kind. */
  noteOffers(): void {
    this.#offers++;
    this.#isIdle = false;
  }

  wake(): void {
    this.#wake();
  }

  /** Fetches no more jobs. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#worker.close(true).catch(() => {});
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const token = randomUUID();
    while (!signal.aborted) {
      if (!this.#given.consumer.hasRoom()) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      try {
        await this.#takeAll(token);
      } catch {
        // Redis is unavailable: its adapter logs that. Work begins where it is accepted meanwhile.
        this.#isIdle = true;
        await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
      }
    }
  }

  /** Wait for a job, and take its offers and those of the next jobs as long as there is room. */
  async #takeAll(token: string): Promise<void> {
    const { consumer, kind, handBack } = this.#given;
    const before = this.#offers;
    let job = (await this.#orClosed(this.#worker.getNextJob(token))) as Job<JobData> | undefined;
    this.#isIdle = job === undefined && this.#offers === before;
    while (job) {
      const offers = this.#offersOf(job).map((offer) => ({ kind, ...offer }));
      const refused = offers.findIndex((offer) => !consumer.take(offer));
      const wantsNext = consumer.hasRoom() && !this.#closing.signal.aborted;
      const offered = this.#offers;
      const next = await this.#orClosed(job.moveToCompleted("", token, wantsNext));
      // Only then: a job with the same ID must not exist.
      if (refused >= 0) await this.#orClosed(handBack(offers.slice(refused)));
      job = this.#toJob(next, token);
      this.#isIdle = wantsNext && job === undefined && this.#offers === offered;
    }
  }

  /** None for a job of another form, such as one of another program: works that no job names any more are offered again. */
  #offersOf({ data }: Job<unknown>): JobData["offers"] {
    const offers = (data as Partial<JobData> | null)?.offers;
    if (Array.isArray(offers) && offers.every(isOffer)) return offers;
    this.#given.refuse();
    return [];
  }

  /** Commands may wait for a Redis that is away. Rejects when the loop is closed. */
  async #orClosed<T>(answer: Promise<T>): Promise<T> {
    const { signal } = this.#closing;
    const closed = Promise.withResolvers<never>();
    const close = (): void => closed.reject(signal.reason);
    signal.addEventListener("abort", close, { once: true });
    try {
      signal.throwIfAborted();
      return await Promise.race([answer, closed.promise]);
    } finally {
      signal.removeEventListener("abort", close);
    }
  }

  /** The next job, which ending the one before has fetched. */
  #toJob(next: unknown, token: string): Job<JobData> | undefined {
    const [data, id] = (Array.isArray(next) ? next : []) as [Parameters<typeof Job.fromJSON>[1] | undefined, string | undefined];
    if (!data || !id) return undefined;
    const job = Job.fromJSON<JobData>(this.#worker, data, id);
    job.token = token;
    return job;
  }
}

function isOffer(offer: Partial<Offer> | null): boolean {
  const isNamed = typeof offer?.id === "string" && typeof offer.isBack === "boolean";
  return isNamed && Number.isSafeInteger(offer.work) && Number.isSafeInteger(offer.generation);
}
