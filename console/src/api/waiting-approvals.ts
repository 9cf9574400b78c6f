import type { CallResult, Client } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { createContext } from "svelte";
import type { Loaded } from "./loaded.svelte.ts";

/** A call of a tool that waits for a person. */
export type Approval = CallResult<typeof conversationsRunsContract.approvals>["approvals"][number];

export interface WaitingApprovals {
  /** The oldest first. */
  readonly approvals: readonly Approval[];
  /** There are more. */
  readonly isPart: boolean;
}

const PAGE = "200";
const MOST_CALLS = 5;

/** The calls that wait and that the signed-in user may decide. */
export async function loadWaitingApprovals(
  calls: Pick<Client<typeof conversationsRunsContract>, "approvals">,
  signal: AbortSignal,
): Promise<WaitingApprovals> {
  const approvals: Approval[] = [];
  let after: string | undefined;
  for (let call = 0; call < MOST_CALLS; call++) {
    const page = await calls.approvals({ query: { limit: PAGE, ...(after !== undefined && { after }) }, signal });
    approvals.push(...page.approvals);
    after = page.next;
    if (after === undefined) break;
  }
  return { approvals, isPart: after !== undefined };
}

const [useWaitingApprovals, provideWaitingApprovals] = createContext<Loaded<WaitingApprovals>>();
/** Loaded once for the whole console, which shows them in several places. */
export { provideWaitingApprovals, useWaitingApprovals };
