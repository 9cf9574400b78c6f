import { pagePace } from "./page-pace.ts";

/** `alive`: the area answers, but is not ready for requests. */
export type Health = "ready" | "alive" | "away";

/** Reads `/healthz` and `/readyz` of an area. Rejects only if it is aborted. */
export async function probe(url: string, signal: AbortSignal): Promise<Health> {
  const isOk = (path: string) => {
    pagePace.requested();
    return fetch(`${url}${path}`, { signal, cache: "no-store" }).then(
      ({ ok }) => ok,
      (error: unknown) => {
        signal.throwIfAborted();
        if (error instanceof TypeError) return false;
        throw error;
      },
    );
  };
  if (await isOk("/readyz")) return "ready";
  return (await isOk("/healthz")) ? "alive" : "away";
}
