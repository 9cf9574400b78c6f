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

/** The writes of the end of a turn that failed. The caller of a turn that is told of its end decides by itself. */
export function failedTurnWrites(records: ports.Records, turn: AcceptedTurn): readonly ports.Write[] {
  if (turn.tell) return [];
  const { runId, agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth } = turn;
  return [
    openFailedTurns(records).write.put(runId, { runId, agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth }),
  ];
}
