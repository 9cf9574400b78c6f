import type { ports } from "@portico/core";
import type { AcceptedTurn } from "./background-turn.ts";

/** What a failed background turn was told, by the id of its run: its owner can run it again. */
export type FailedTurn = Pick<
  AcceptedTurn,
  "runId" | "agentId" | "userId" | "prompt" | "toolIds" | "maxTurns" | "origin" | "workflowDepth"
>;

/** Failed background turns. They stay as long as their runs. */
export const openFailedTurns = (records: ports.Records): ports.Collection<FailedTurn> =>
  records.collection<FailedTurn>({ name: "background-failed" });

/** The writes of the end of a turn that failed. A caller that is told of the end of its turn decides by itself. */
export function failedTurnWrites(records: ports.Records, turn: AcceptedTurn): readonly ports.Write[] {
  if (turn.tell || turn.isAsked) return [];
  const { runId, agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth } = turn;
  return [
    openFailedTurns(records).write.put(runId, { runId, agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth }),
  ];
}
