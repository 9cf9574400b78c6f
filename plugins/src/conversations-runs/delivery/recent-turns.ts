import type { ClientRequests } from "../requests/client-requests.ts";
import { subscriberOf, type Listener, type NamedTurn } from "./subscriber.ts";
import { processIdOf } from "./numbered-turn.ts";

/** A turn that began, as the registry of submissions knows it. */
export interface RecentTurn extends NamedTurn {
  /** Milliseconds since 1970; undefined while it executes. */
  readonly endedAt: number | undefined;
}

/** The turns of a listener that execute now, in whichever process, and those that ended after this time, in the order of their ends. */
export async function recentTurns(
  requests: Pick<ClientRequests, "heardBy">,
  listener: Listener,
  since: number,
): Promise<readonly RecentTurn[]> {
  const subscriber = subscriberOf(listener);
  if (subscriber === undefined) return [];
  const turns: RecentTurn[] = [];
  for await (const { clientRequestId, turnId, serverInstanceId, number, endedAt } of requests.heardBy(subscriber, since)) {
    // Waiting turns send their events later.
    if (serverInstanceId === undefined || number === undefined) continue;
    turns.push({ clientRequestId, turnId, processId: processIdOf(serverInstanceId), number, endedAt });
  }
  return turns.sort((a, b) => (a.endedAt ?? Infinity) - (b.endedAt ?? Infinity));
}

/** The turns of a listener that wait for a person. No process executes them. */
export async function waitingTurns(
  requests: Pick<ClientRequests, "executing">,
  listener: Listener,
): Promise<readonly NamedTurn[]> {
  const subscriber = subscriberOf(listener);
  if (subscriber === undefined) return [];
  const turns: NamedTurn[] = [];
  for await (const { clientRequestId, turnId, serverInstanceId, number, waits } of requests.executing(subscriber)) {
    if (waits === undefined || serverInstanceId === undefined || number === undefined) continue;
    turns.push({ clientRequestId, turnId, processId: processIdOf(serverInstanceId), number });
  }
  return turns;
}
