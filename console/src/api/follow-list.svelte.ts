import { CallFailed } from "@portico/core/client";
import { pagePace } from "./page-pace.ts";
import { pause } from "./pause.ts";

const RETRY_MS = 3_000;
/** On a page that the user has left alone. */
const IDLE_RETRY_MS = 20_000;
/** A stream that the service refuses, because it has enough readers, is opened again after this time. */
const REFUSED_MS = 60_000;

interface ListEvent {
  readonly id?: string | undefined;
}

/** Follows a list by its stream, while the page is visible: each tab needs a connection, of which a browser has few. */
export class ListFollower {
  /** Whether the stream tells of changes now. Otherwise the list has to be read from time to time. */
  isLive = $state(false);
  #lastEventId: string | undefined;

  /** Calls `changed` after each change, until the signal aborts. `open` opens the stream after an event. Never rejects. */
  async follow(
    open: (headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<AsyncIterable<ListEvent>>,
    changed: () => unknown,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      const hidden = new AbortController();
      const hide = () => document.hidden && hidden.abort();
      document.addEventListener("visibilitychange", hide);
      let isRefused = false;
      try {
        if (document.hidden) await visible(signal);
        const until = AbortSignal.any([signal, hidden.signal]);
        const events = await open(this.#lastEventId === undefined ? {} : { "last-event-id": this.#lastEventId }, until);
        this.isLive = true;
        for await (const { id } of events) {
          // The first event of all stands for the list that the page reads anyway.
          if (this.#lastEventId !== undefined) pagePace.changed();
          this.#lastEventId = id;
          changed();
        }
      } catch (error) {
        isRefused = CallFailed.is(error) && error.status < 500;
      } finally {
        this.isLive = false;
        document.removeEventListener("visibilitychange", hide);
      }
      const retryMs = pagePace.isIdle ? IDLE_RETRY_MS : RETRY_MS;
      await pause(isRefused ? REFUSED_MS : hidden.signal.aborted ? 0 : retryMs, signal).catch(() => {});
    }
  }
}

/** Resolves when the page is visible. Rejects with the reason of the signal when it aborts. */
function visible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = new AbortController();
    const once = { once: true, signal: ended.signal };
    const end = (settle: () => void) => () => {
      ended.abort();
      settle();
    };
    document.addEventListener("visibilitychange", end(resolve), once);
    signal.addEventListener(
      "abort",
      end(() => reject(signal.reason)),
      once,
    );
  });
}
