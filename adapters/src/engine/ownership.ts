import { ports } from "@portico/core";
import type { Journal } from "./journal.ts";

/** The dependencies of an ownership. */
export interface OwnershipOptions {
  readonly journal: Journal;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly owner: string;
  readonly leaseMs: number;
  /** This process owns the work now, but did not when `claim` returned. */
  onLateClaim(): Promise<void>;
  /** Another process has taken over. */
  onLost(error: ports.EngineFenced): void;
  /** Called with every renewal of the lease. */
  onRenew(): Promise<void>;
}

type State = "new" | "standing by" | "owner" | "lost" | "closed";

const REFUSALS: Readonly<Record<Exclude<State, "owner">, () => Error>> = {
  new: () => new ports.EngineUnavailable("The engine is not ready yet"),
  "standing by": () => new ports.EngineFenced("Another process owns the work"),
  lost: () => new ports.EngineFenced("Another process has taken the work over"),
  closed: () => new ports.EngineUnavailable("The engine is closed"),
};

/** Renewals per lease: a process that is slow for a while keeps its work. */
const RENEWALS_PER_LEASE = 3;

/** Whether this process owns the work. Claims it, renews the lease, and notices its loss. */
export class Ownership {
  readonly #options: OwnershipOptions;
  #state: State = "new";
  #timer: ports.Timer | undefined;

  constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  get isOwner(): boolean {
    return this.#state === "owner";
  }

  /** Throws the caller's error if this process does not own the work. */
  assert(): void {
    if (this.#state !== "owner") throw REFUSALS[this.#state]();
  }

  /** Claim the work. False if another owner has it; then it claims again when that lease has expired. */
  async claim(): Promise<boolean> {
    const { journal, clock, owner, leaseMs } = this.#options;
    const now = clock.now();
    const claim = await journal.claim({ owner, now, until: now + leaseMs });
    if (this.#state === "closed") return false;
    this.#state = claim.owned ? "owner" : "standing by";
    if (claim.owned) this.#after(leaseMs / RENEWALS_PER_LEASE, () => this.#renew());
    else this.#after(claim.until - now, () => this.#claimLate());
    return claim.owned;
  }

  /** Await a write, and notice its refusal. */
  async watch<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      this.notice(error);
      throw error;
    }
  }

  /** A write was refused, for any reason. */
  notice(error: unknown): void {
    if (error instanceof ports.EngineFenced) this.#lose(error);
  }

  /** Allow other processes to take over at once. */
  async close(): Promise<void> {
    const owned = this.#state === "owner";
    this.#state = "closed";
    this.#timer?.cancel();
    // If the release fails, the next process waits for the lease, or takes over anyway.
    if (owned) await this.#options.journal.release().catch(() => {});
  }

  async #claimLate(): Promise<void> {
    if (await this.claim()) await this.#options.onLateClaim();
  }

  async #renew(): Promise<void> {
    const { journal, clock, leaseMs, onRenew } = this.#options;
    this.#after(leaseMs / RENEWALS_PER_LEASE, () => this.#renew());
    await this.watch(journal.renew(clock.now() + leaseMs));
    await onRenew();
  }

  #after(ms: number, run: () => Promise<void>): void {
    const { clock, log, leaseMs } = this.#options;
    this.#timer = clock.after(ms, () => {
      run().catch((error: unknown) => {
        if (this.#state === "closed" || error instanceof ports.EngineFenced) return;
        log.warn("The engine's lease could not be renewed or claimed", {}, error);
        if (this.#state === "standing by") this.#after(leaseMs / RENEWALS_PER_LEASE, run);
      });
    });
  }

  #lose(error: ports.EngineFenced): void {
    if (this.#state !== "owner") return;
    this.#state = "lost";
    this.#timer?.cancel();
    this.#options.log.error("Another process has taken the engine's work over: this one begins no more");
    this.#options.onLost(error);
  }
}
