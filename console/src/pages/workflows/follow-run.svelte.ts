import { CallFailed, type Client } from "@portico/core/client";
import type { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { pause } from "../../api/pause.ts";
import { applyEvent, type FollowedRun, type RunEvent, takeHistory } from "./apply-event.ts";
import { hasEnded } from "./status-words.ts";

/**
 * The source of the shown data. `live`: the stream of events. `history`: the polled history, because the run has no stream.
 * `elsewhere`: the polled history, because another reader took over the stream. `cut`: the service does not answer and is retried. `ended`: the run has ended.
 */
export type Source = "opening" | "live" | "history" | "elsewhere" | "cut" | "ended";

const RETRY_MS = 1_500;
const LOOK_MS = 2_000;
/** Events within this time are shown together. */
const SHOW_MS = 60;
/** While the stream is live, the history adds data that events lack: attempts, times, and skipped nodes. Reading it takes at most a tenth of the time. */
const REREAD_MS = 1_000;
const REREAD_SHARE = 10;

/** Follows a run: uses its stream of events if available (specification 6.1: one reader for each run), and its history otherwise. */
export class RunFollower {
  run = $state.raw<FollowedRun>();
  source = $state<Source>("opening");
  /** Why the run cannot be shown. */
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

  /** Follows until the run ends or the signal aborts. Takes over the stream from another reader. Never rejects: final failures are in `error`. */
  async follow(signal: AbortSignal): Promise<void> {
    let wantsEvents = true;
    try {
      for (;;) {
        const isRead = await this.#read(signal);
        if (isRead && this.#hasEnded()) return;
        // After an outage, the service may be another process.
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

  /** Read the history now, for example after a decision. Never rejects. */
  async refresh(signal?: AbortSignal): Promise<void> {
    await this.#read(signal).catch(() => false);
  }

  /** Returns whether the service answered. Throws errors that waiting does not fix. */
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
      // The stream ended without `workflow:complete`: another reader took over, or the service stops.
      this.source = "elsewhere";
      return "taken-over";
    } catch (error) {
      signal.throwIfAborted();
      // The run was accepted before the process started, so it has no stream.
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
      // Events that arrive meanwhile request another reading.
      this.#rereading = undefined;
      const began = performance.now();
      await this.refresh(signal);
      this.#rereadMs = Math.max(REREAD_MS, (performance.now() - began) * REREAD_SHARE);
    }, this.#rereadMs);
  }
}

/** Whether the service refused the call, rather than being unreachable. */
function isFinal(error: unknown): boolean {
  return CallFailed.is(error) && error.status < 500;
}
