import { createHash } from "node:crypto";
import type { ports } from "@portico/core";
import type { PlayedTurn } from "../turns/turn.ts";

/** An accepted background turn, as the engine keeps it. It cannot be continued: it has a run and a session, but no conversation. */
export interface AcceptedTurn extends PlayedTurn {
  readonly conversationId?: undefined;
  readonly toolIds?: readonly string[] | undefined;
  readonly origin: ports.TurnOrigin;
  readonly tell?: ports.TurnListener | undefined;
  /** It goes on after its wait of this number. */
  readonly part?: number | undefined;
  /** Which attempt it is, if it is not the first. */
  readonly attempt?: number | undefined;
  /** The failed run that it runs again. */
  readonly againOf?: string | undefined;
}

/** A turn whose caller waits for its answer. */
export interface AskedTurn extends AcceptedTurn {
  readonly isAsked: true;
  /** The process that its caller waits in (`serverInstanceId`). */
  readonly askedIn: string;
}

/** The engine's kinds of work. */
export const BACKGROUND_TURN = "background-turn";
export const ASKED_TURN = "asked-turn";

/** The ids of a turn: they share their suffix, so that each follows from the others. */
export const turnIds = (suffix: string) => ({ turnId: `turn_${suffix}`, sessionId: `ses_${suffix}`, runId: `run_${suffix}` });

/** The turn of a run; undefined for an invalid run id. */
export function turnIdOf(runId: string): string | undefined {
  return runId.startsWith("run_") ? `turn_${runId.slice("run_".length)}` : undefined;
}

/**
 * The suffix of the ids of the one turn with this key, which makes a search for that turn unnecessary. `newIdSuffix` never begins like this. JSON
 * keeps keys apart that are the same in UTF-8.
 */
export function keyedIdSuffix(key: string): string {
  return `key_${createHash("sha256").update(JSON.stringify(key)).digest("base64url")}`;
}

/** The next attempt of a turn. */
export interface Retry {
  readonly attempt: number;
  readonly delayMs: number;
}

/** Which attempt of its turn this is, from 1 on. */
export const attemptOf = ({ attempt }: { readonly attempt?: number | undefined }): number => attempt ?? 1;

/**
 * The engine's work of an attempt. A turn that waits for a person has none, so that it takes no slot of its agent: another work continues it
 * after the wait of its number.
 */
export function workIdOf(turnId: string, which: Pick<AcceptedTurn, "attempt" | "part">): string {
  const attempt = attemptOf(which) === 1 ? "" : `!${which.attempt}`;
  const part = which.part === undefined ? "" : `~${which.part}`;
  return `${turnId}${attempt}${part}`;
}
