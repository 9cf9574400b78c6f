import { createHash } from "node:crypto";
import type { ports } from "@portico/core";
import type { PlayedTurn } from "../turns/turn.ts";

/** An accepted background turn, as the engine keeps it. Nobody goes on with it: it has a run and a session, and no conversation. */
export interface AcceptedTurn extends PlayedTurn {
  readonly conversationId?: undefined;
  readonly toolIds?: readonly string[] | undefined;
  readonly origin: ports.TurnOrigin;
  readonly tell?: ports.TurnListener | undefined;
}

/** The ids of a turn; each can be told from the other. */
export const turnIds = (end: string) => ({ turnId: `turn_${end}`, sessionId: `ses_${end}`, runId: `run_${end}` });

/** The turn of a run; undefined for what is no id of a run. */
export function turnIdOf(runId: string): string | undefined {
  return runId.startsWith("run_") ? `turn_${runId.slice("run_".length)}` : undefined;
}

/**
 * The end of the ids of the one turn with this key, so that nobody has to look for it. No `newEnd` begins like this, and a digest of JSON tells
 * apart keys that UTF-8 would not.
 */
export function keyedEnd(key: string): string {
  return `key_${createHash("sha256").update(JSON.stringify(key)).digest("base64url")}`;
}
