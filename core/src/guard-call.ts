import { describeCause } from "./describe-cause.ts";

/**
 * Calls code of an adapter, a plugin or an embedder from a place that awaits no result: an event, a timer, a collection. An error that it throws,
 * and a promise of it that rejects, goes to `failed` and ends this call only. Otherwise it would end the process.
 */
export function guardCall(run: () => unknown, failed: (error: unknown) => void): void {
  try {
    const pending = run();
    if (isThenable(pending)) pending.then(undefined, failed);
  } catch (error) {
    failed(error);
  }
}

/**
 * The same object, whose promises may be dropped: a rejection that its user does not await does not end the process. For objects of functions
 * that are given to code of an adapter.
 */
export function withHandledRejections<T extends object>(given: T): T {
  const functions = Object.entries(given).flatMap(([name, value]: [string, unknown]) => {
    if (typeof value !== "function") return [];
    const call = (...args: unknown[]): unknown => {
      const result: unknown = Reflect.apply(value, given, args);
      if (isThenable(result)) result.then(undefined, () => {});
      return result;
    };
    return [[name, call] as const];
  });
  return { ...given, ...Object.fromEntries(functions) };
}

/** Reports a failure for which there is no log, for example of the log itself. */
export function reportFailure(what: string, error: unknown): void {
  console.error(what, describeCause(error));
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
