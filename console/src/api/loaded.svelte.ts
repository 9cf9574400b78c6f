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

/**
 * Loads a value when the component is shown, and then every `everyMs`, while the page is visible. Stops with the component. Must be
 * called during component initialization. `whileHidden`: also while the page is hidden, as often as the browser allows. State that `load` reads before its first `await` is tracked.
 */
export function loaded<T>(load: (signal: AbortSignal) => Promise<T>, everyMs?: number, { whileHidden = false } = {}): Loaded<T> {
  let value = $state.raw<T>();
  let error = $state.raw<unknown>();
  let isPending = $state(true);
  let current: AbortController | undefined;

  const refresh = async () => {
    current?.abort();
    const attempt = (current = new AbortController());
    try {
      const next = await load(attempt.signal);
      if (attempt !== current) return;
      value = next;
      error = undefined;
    } catch (failure) {
      if (attempt !== current) return;
      error = failure;
    }
    current = undefined;
    isPending = false;
  };

  $effect(() => {
    void refresh();
    // A load that takes longer than the interval is not started again: it would never end.
    const isDue = () => current === undefined && (whileHidden || !document.hidden);
    const timer = everyMs === undefined ? undefined : setInterval(() => void (isDue() && refresh()), everyMs);
    return () => {
      clearInterval(timer);
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
