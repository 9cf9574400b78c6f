import { firstCharacters } from "@portico/core/contract";
import type { PlayedTurn } from "./turn.ts";
import type { Run } from "../runs/runs.ts";

/** The run that a session's first turn begins, at this time (ISO 8601). */
export function firstRun(turn: Omit<PlayedTurn, "turnId" | "acceptedAt">, at: string): Run {
  const { delegation } = turn;
  return {
    run_id: turn.runId,
    user_id: turn.userId,
    agent_id: turn.agentId,
    started_at: at,
    status: "idle",
    session_id: turn.sessionId,
    updatedAt: at,
    title: titleOf(turn.prompt),
    ...(turn.conversationId !== undefined && { conversation_id: turn.conversationId, messageCount: 0 }),
    ...(delegation && {
      delegation: {
        fromAgentId: delegation.fromAgentId,
        parentRunId: delegation.parentRunId,
        parentClientRequestId: delegation.parentClientRequestId,
        mode: delegation.mode,
      },
    }),
  };
}

const TITLE_CHARACTERS = 80;

/** The beginning of the first prompt, until a user sets another title. */
function titleOf(prompt: string): string {
  // More than enough, of a prompt that may be a book.
  const line = prompt
    .slice(0, TITLE_CHARACTERS * 10)
    .trim()
    .split(/\s+/)
    .join(" ");
  const title = firstCharacters(TITLE_CHARACTERS, line.toWellFormed());
  return title.length < line.length ? `${title}…` : title;
}
