import { CallFailed } from "@portico/core/client";
import { type Paced, pagePace } from "./page-pace.ts";

/** The data that was loaded for a page, and the result of the last attempt. */
export interface Loaded<T> {
  /** The last loaded value. It stays if a later attempt fails. */
  readonly value: T | undefined;
  /** The error of the last attempt. */
  readonly error: unknown;
  /** Whether the first attempt has not ended yet. */
  readonly isPending: boolean;
  /** Load again now. Never rejects: failures are in `error`. */
  refresh(): Promise<void>;
}

/** The interval of attempts to load a value that no refresh loads again, while the service does not answer. */
const RETRY_MS = 5_000;

/** How a value is loaded again. */
export interface LoadedOptions {
  /** Also while the page is hidden, at the pace of an idle page. */
  readonly whileHidden?: boolean;
  /** The value is another one each time, as counters are: a change does not tell that something happens. */
  readonly alwaysChanges?: boolean;
  /** Whether the interval counts now. Default: always. */
  readonly isDue?: () => boolean;
}

/**
 * Loads a value when the component is shown, and then every `everyMs`, while the page is visible, and rarely while it is [idle](page-pace.ts). Without
 * `everyMs`, it is loaded again only until the service answers. Stops with the component. Must be called during component initialization. State that `load` reads before its first `await` is tracked.
 */
export function loaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  everyMs?: number,
  { whileHidden = false, alwaysChanges = false, isDue = () => true }: LoadedOptions = {},
): Loaded<T> {
  let value = $state.raw<T>();
  let error = $state.raw<unknown>();
  let isPending = $state(true);
  let current: AbortController | undefined;
  /** As text, to see whether a later one is different. */
  let text: string | undefined;

  const refresh = async () => {
    current?.abort();
    const attempt = (current = new AbortController());
    try {
      const next = await load(attempt.signal);
      if (attempt !== current) return;
      value = next;
      error = undefined;
      if (everyMs !== undefined) {
        const before = text;
        text = alwaysChanges ? "" : JSON.stringify(next);
        pagePace.read(paced, text !== before);
      }
    } catch (failure) {
      if (attempt !== current) return;
      error = failure;
    }
    current = undefined;
    isPending = false;
  };
  // A load that takes longer than the interval is not started again: it would never end.
  const isWanted = () => everyMs !== undefined || isUnanswered(error);
  const paced: Paced = { whileHidden, isDue: () => current === undefined && isWanted() && isDue(), refresh };

  $effect(() => {
    void refresh();
    const leave = pagePace.add(paced);
    const timer = setInterval(() => void (!pagePace.isIdle && paced.isDue() && refresh()), everyMs ?? RETRY_MS);
    return () => {
      clearInterval(timer);
      leave();
      current?.abort();
      current = undefined;
    };
  });

  return {
    get value() {
      return value;
    },
    get error() {
      return error;
    },
    get isPending() {
      return isPending;
    },
    refresh,
  };
}

/** The service could not be reached, or could not answer now. What it refuses stays refused. */
function isUnanswered(error: unknown): boolean {
  if (CallFailed.is(error)) return error.status >= 500;
  return error instanceof TypeError || (error instanceof Error && error.name === "FetchError");
}
