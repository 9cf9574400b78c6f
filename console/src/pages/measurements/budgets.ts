import { CallFailed, type CallResult } from "@portico/core/client";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { useInstance } from "../../api/instance.ts";
import { type Loaded, loaded } from "../../api/loaded.svelte.ts";

export type Budgets = CallResult<typeof conversationsRunsContract.budgets>;

const REFRESH_MS = 30_000;
/** A budget with this part used is near its end. */
const NEAR = 0.8;

/** The limits of the day, read again while they are shown. */
export function loadBudgets(): Loaded<Budgets> {
  const calls = useInstance().client(conversationsRunsContract);
  return loaded(async (signal) => {
    try {
      return await calls.budgets({ signal });
    } catch (error) {
      // An instance without limits shows none.
      if (CallFailed.is(error) && error.status === 404) return { budgets: [], omitted: 0 };
      throw error;
    }
  }, REFRESH_MS);
}

/** The used part, from 0 to 1. A limit of 0 is used up. */
export function partOf({ used, most }: Budgets["budgets"][number]): number {
  return most === 0 ? 1 : Math.min(1, used / most);
}

/** Those of which 80 % or more is used. */
export function nearOnes({ budgets }: Budgets): Budgets["budgets"] {
  return budgets.filter((budget) => partOf(budget) >= NEAR);
}
