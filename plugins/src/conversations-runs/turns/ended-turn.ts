import type { ports } from "@portico/core";
import type { Run } from "../runs/runs.ts";
import type { PlayedTurn } from "./turn.ts";
import type { TurnEnd } from "./turn-end.ts";

/** Reasons of turns that a user stopped. */
const STOPPED: readonly (string | undefined)[] = ["user_stop", "conversation_cleared"];

/** An ended turn as the port `usage` counts it. `endedAt` is in milliseconds since 1970. */
export function endedTurn(turn: PlayedTurn, { status, reason }: TurnEnd, run: Run, endedAt: number): ports.EndedWork {
  const began = run.turn_started_at;
  return {
    kind: "turn",
    name: turn.agentId,
    outcome: status === "interrupted" && STOPPED.includes(reason) ? "cancelled" : status,
    durationMs: began === undefined ? undefined : Math.max(0, endedAt - Date.parse(began)),
  };
}
