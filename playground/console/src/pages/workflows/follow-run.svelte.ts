import { CallFailed, type Client } from "@portico/core/client";
import type { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { applyEvent, type FollowedRun, type RunEvent, takeHistory } from "./apply-event.ts";
import { hasEnded } from "./status-words.ts";

/**
 * Where what is shown comes from: `live`, the stream of events; `history`, looked at again and again, because no stream of the run can be had;
 * `elsewhere`, the same because another reader took the stream over; `cut`, nobody answers and it is tried again; `ended`, nothing more comes.
 */
export type Source = "opening" | "live" | "history" | "elsewhere" | "cut" | "ended";

const RETRY_MS = 1_500;
const LOOK_MS = 2_000;
/** Events that come together are shown together. */
const SHOW_MS = 60;
/** While it is live, the history adds what events do not tell: attempts, times, and what was skipped. It never takes more than a tenth of the time. */
const REREAD_MS = 1_000;
const REREAD_SHARE = 10;

/** A run as it goes on: its events as long as there is a stream of them (specification 6.1: one reader for each run), and its history otherwise. */
export class RunFollower {
  run = $state.raw<FollowedRun>();
  source = $state<Source>("opening");
  /** Why the run cannot be shown at all. */
  error = $state.raw<unknown>();
  readonly #calls: Client<typeof workflowServiceContract>;
  readonly #params: { readonly id: string; readonly runId: string };
  #known: FollowedRun | undefined;
  #showing: ReturnType<typeof setTimeout> | undefined;
  #rereading: ReturnType<typeof setTimeout> | undefined;
  #rereadMs = REREAD_MS;

  constructor(calls: Client<typeof workflowServiceContract>, workflowId: string, runId: string) {
    this.#calls = calls;
    this.#params = { id: workflowId, runId };
  }

  /** Until the run has ended or the signal says so. Takes the stream over from whoever has it. Never rejects: what is final stands in `error`. */
  async follow(signal: AbortSignal): Promise<void> {
    let wantsEvents = true;
    try {
      for (;;) {
        const isRead = await this.#read(signal);
        if (isRead && this.#hasEnded()) return;
        // Whoever was away may be another process by now.
        if (!isRead) wantsEvents = true;
        else if (wantsEvents) {
          const outcome = await this.#listen(signal);
          if (outcome === "completed") continue;
          wantsEvents = outcome === "cut";
        }
        await pause(wantsEvents ? RETRY_MS : LOOK_MS, signal);
      }
    } catch (error) {
      if (!signal.aborted) this.error = error;
    } finally {
      clearTimeout(this.#rereading);
      this.#rereading = undefined;
    }
  }

  /** Look at the history now, as after a decision. Never rejects. */
  async refresh(signal?: AbortSignal): Promise<void> {
    await this.#read(signal).catch(() => false);
  }

  /** Answers whether the service did. Throws what no waiting mends. */
  async #read(signal: AbortSignal | undefined): Promise<boolean> {
    try {
      const read = await this.#calls.run({ params: this.#params, ...(signal && { signal }) });
      signal?.throwIfAborted();
      this.#known = takeHistory(this.#known, read);
      if (this.#hasEnded()) this.source = "ended";
      this.#show();
      return true;
    } catch (error) {
      signal?.throwIfAborted();
      if (isFinal(error)) throw error;
      this.source = "cut";
      return false;
    }
  }

  async #listen(signal: AbortSignal): Promise<"completed" | "taken-over" | "none" | "cut"> {
    try {
      const events = await this.#calls.events({ query: { runId: this.#params.runId }, signal });
      this.source = "live";
      for await (const event of events) {
        signal.throwIfAborted();
        this.#take(event);
        if (event.event === "workflow:complete") return "completed";
        this.#rereadSoon(signal);
      }
      // An end without `workflow:complete`: somebody else reads now, or the service stops.
      this.source = "elsewhere";
      return "taken-over";
    } catch (error) {
      signal.throwIfAborted();
      // Accepted before the process started: there is no stream of it.
      if (CallFailed.is(error) && error.code === "run_not_found") {
        this.source = "history";
        return "none";
      }
      if (isFinal(error)) throw error;
      this.source = "cut";
      return "cut";
    }
  }

  #take(event: RunEvent): void {
    if (!this.#known) return;
    applyEvent(this.#known, event, new Date().toISOString());
    this.#showing ??= setTimeout(() => this.#show(), SHOW_MS);
  }

  #hasEnded(): boolean {
    return this.#known !== undefined && hasEnded(this.#known.status);
  }

  #show(): void {
    clearTimeout(this.#showing);
    this.#showing = undefined;
    this.run = this.#known && { ...this.#known, nodeResults: { ...this.#known.nodeResults } };
  }

  #rereadSoon(signal: AbortSignal): void {
    this.#rereading ??= setTimeout(async () => {
      // What is told meanwhile asks for another.
      this.#rereading = undefined;
      const began = performance.now();
      await this.refresh(signal);
      this.#rereadMs = Math.max(REREAD_MS, (performance.now() - began) * REREAD_SHARE);
    }, this.#rereadMs);
  }
}

/** Refused, and not out of reach. */
function isFinal(error: unknown): boolean {
  return CallFailed.is(error) && error.status < 500;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", abort, { once: true });
  });
}
