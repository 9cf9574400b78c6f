import type { ClientRequests } from "../queries/client-requests.ts";
import { audienceOf, type Listener, type NamedTurn } from "./audience.ts";
import { lifeOf } from "./numbered-turn.ts";

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
  const audience = audienceOf(listener);
  if (audience === undefined) return [];
  const turns: RecentTurn[] = [];
  for await (const { clientRequestId, turnId, serverInstanceId, number, endedAt } of requests.heardBy(audience, since)) {
    // Waiting turns send their events later.
    if (serverInstanceId === undefined || number === undefined) continue;
    turns.push({ clientRequestId, turnId, life: lifeOf(serverInstanceId), number, endedAt });
  }
  return turns.sort((a, b) => (a.endedAt ?? Infinity) - (b.endedAt ?? Infinity));
}

/** The turns of a listener that wait for a person. No process executes them. */
export async function waitingTurns(
  requests: Pick<ClientRequests, "executing">,
  listener: Listener,
): Promise<readonly NamedTurn[]> {
  const audience = audienceOf(listener);
  if (audience === undefined) return [];
  const turns: NamedTurn[] = [];
  for await (const { clientRequestId, turnId, serverInstanceId, number, waits } of requests.executing(audience)) {
    if (waits === undefined || serverInstanceId === undefined || number === undefined) continue;
    turns.push({ clientRequestId, turnId, life: lifeOf(serverInstanceId), number });
  }
  return turns;
}
