import type { CallResult, Client } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { Receipt } from "./receipts.svelte.ts";
import type { Trace } from "./trace.ts";

/** A turn with its trace, and with its receipt if the user may see it. */
export interface TracedTurn extends Omit<CallResult<typeof conversationsRunsContract.trace>["turns"][number], "trace"> {
  readonly trace: Trace;
  readonly receipt: Receipt | undefined;
}

const TURNS = "20";

/** The newest turns of a run that have a trace, the newest first. `isUser`: the caller is a user and may ask for receipts. */
export async function loadTracedTurns(
  calls: Pick<Client<typeof conversationsRunsContract>, "trace" | "receipts">,
  { runId, isUser, signal }: { readonly runId: string; readonly isUser: boolean; readonly signal: AbortSignal },
): Promise<readonly TracedTurn[]> {
  const given = { params: { id: runId }, query: { limit: TURNS }, signal };
  // Without them, the parts have no inputs and outputs.
  const receiptsOf = async (): Promise<readonly Receipt[]> =>
    calls.receipts(given).then(
      ({ receipts }) => receipts,
      () => [],
    );
  const [{ turns }, receipts] = await Promise.all([calls.trace(given), isUser ? receiptsOf() : []]);
  return turns
    .flatMap(({ trace, ...turn }) =>
      trace ? [{ ...turn, trace, receipt: receipts.find(({ receipt_id }) => receipt_id === turn.receipt_id) }] : [],
    )
    .toReversed();
}
