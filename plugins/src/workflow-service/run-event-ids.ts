/**
 * The last event that a reader of a run has received. A number counts the entries of the ledger up to this event: 0 is `workflow:started`.
 * `error` and `complete` are the events of the run's end.
 */
export type RunPlace = number | "error" | "complete";

/** The id of an event. It is the same after a restart, and in every process of a cluster, because entries keep their positions in the log. */
export function runEventId(runId: string, place: RunPlace): string {
  return `${runId}:${place}`;
}

/** The place that an id names. Undefined for an invalid id, and for an id of another run. */
export function readRunPlace(runId: string, id: string | undefined): RunPlace | undefined {
  const prefix = `${runId}:`;
  if (!id?.startsWith(prefix)) return undefined;
  const place = id.slice(prefix.length);
  if (place === "error" || place === "complete") return place;
  return /^(?:0|[1-9]\d{0,14})$/.test(place) ? Number(place) : undefined;
}
