import type { ports } from "@portico/core";
import type { TurnEnd } from "../turns/turn-end.ts";
import type { AcceptedTurn } from "./background-turn.ts";

/** What a failed background turn was told, by the id of its run: its owner can run it again. */
export type FailedTurn = Pick<
  AcceptedTurn,
  "runId" | "agentId" | "userId" | "prompt" | "toolIds" | "maxTurns" | "origin" | "workflowDepth"
>;

/** Failed background turns. They stay as long as their runs. */
export const openFailedTurns = (records: ports.Records): ports.Collection<FailedTurn> =>
  records.collection<FailedTurn>({ name: "background-failed" });

/**
 * The writes of the end of a turn that failed, with those that tell the operators. A caller that is told of the end of its turn decides by
 * itself.
 */
export function failedTurnWrites(
  { records, notifications }: { readonly records: ports.Records; readonly notifications?: ports.Notifications | undefined },
  turn: AcceptedTurn,
  { reason, failure }: TurnEnd,
): readonly ports.Write[] {
  if (turn.tell || turn.isAsked) return [];
  const { runId, agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth } = turn;
  const code = failure?.code ?? reason;
  return [
    openFailedTurns(records).write.put(runId, { runId, agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth }),
    ...(notifications?.writes("run.failed", {
      id: runId,
      data: { service: "agent", agentId, runId, origin: origin.origin, ...(code !== undefined && { code }) },
      page: ["runs", runId],
    }) ?? []),
  ];
}
