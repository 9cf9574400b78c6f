/** `alive`: it answers, and asks for no requests now. */
export type Health = "ready" | "alive" | "away";

/** What `/healthz` and `/readyz` of an area say. Rejects only when it is aborted. */
export async function probe(url: string, signal: AbortSignal): Promise<Health> {
  const isOk = (path: string) =>
    fetch(`${url}${path}`, { signal, cache: "no-store" }).then(
      ({ ok }) => ok,
      (error: unknown) => {
        signal.throwIfAborted();
        if (error instanceof TypeError) return false;
        throw error;
      },
    );
  if (await isOk("/readyz")) return "ready";
  return (await isOk("/healthz")) ? "alive" : "away";
}
