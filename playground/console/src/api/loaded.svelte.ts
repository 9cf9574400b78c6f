/** What was loaded for a page, and what came of the last attempt. */
export interface Loaded<T> {
  /** The last that arrived; it stays while a later attempt fails. */
  readonly value: T | undefined;
  /** Of the last attempt. */
  readonly error: unknown;
  /** Whether nothing has arrived or failed yet. */
  readonly isPending: boolean;
  /** Load again now. Never rejects: what fails stands in `error`. */
  refresh(): Promise<void>;
}

/**
 * Load something when the component is shown, and then every `everyMs`, as long as somebody can see the page. Ends with the component. To be
 * called while a component is set up; what `load` reads before its first `await` is followed.
 */
export function loaded<T>(load: (signal: AbortSignal) => Promise<T>, everyMs?: number): Loaded<T> {
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
    isPending = false;
  };

  $effect(() => {
    void refresh();
    const timer = everyMs === undefined ? undefined : setInterval(() => document.hidden || void refresh(), everyMs);
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
