import { WORKFLOW_DEPTH } from "../limits.ts";

/** Why a run is not begun. */
export const TOO_DEEP = `Workflows run each other, also through agents, at most ${WORKFLOW_DEPTH} deep`;

/** The depth of a run that is started by a run at `depth`, or by no run (undefined). Returns undefined if that is too deep. */
export function depthBelow(depth: number | undefined): number | undefined {
  const below = depth === undefined ? 0 : depth + 1;
  return below > WORKFLOW_DEPTH ? undefined : below;
}
