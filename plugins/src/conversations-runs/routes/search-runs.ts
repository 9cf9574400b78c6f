import { type ports, readRunCursors, RUN_SEARCH, RunCursorInvalid, writeRunCursors } from "@portico/core";
import { agentErrors } from "../errors.ts";
import { type Parameter, readLimit, readTime } from "../pagination.ts";
import type { runFilters } from "../run-counts-contract.ts";
import { shownRun } from "../runs/run-outcome.ts";
import { runCriteria, type SearchedRuns } from "../runs/runs.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Finds runs, the newest first: an owner among all, a member among its own. */
export function searchRuns({ runtime: { runs } }: ConversationServices): ConversationHandlers["searchRuns"] {
  return async ({ query, who }) => {
    const limit = readLimit(query.limit, RUN_SEARCH.page.usual);
    const asked = readRunSearch(query, who);
    const cursors = { after: readCursor(query.after), before: readCursor(query.before) };
    const place = await readRunCursors(asked ?? {}, cursors, { names: ["after", "before"] }).catch(toPaginationError);
    if (!asked) return { runs: [] };
    const page = await runs.search(asked, { ...place, limit });
    return { runs: page.items.map(shownRun), ...(await writeRunCursors(asked, page)) };
  };
}

/** What a caller searches for. Undefined if the caller may see none of it. Throws `invalid_filter`. */
export function readRunSearch(
  query: Readonly<Partial<Record<keyof typeof runFilters, Parameter>>>,
  who: ports.Caller,
): SearchedRuns | undefined {
  const given = Object.entries(runCriteria).map(([name, { read }]) => [
    name,
    read(name, query[name as keyof typeof runCriteria]),
  ]);
  const { user_id, ...criteria } = Object.fromEntries(given) as SearchedRuns;
  const search: SearchedRuns = {
    ...criteria,
    user_id: who.role === "owner" ? user_id : who.userId,
    from: readTime("started_from", query.started_from),
    before: readTime("started_before", query.started_before),
  };
  // To a member, runs of others are missing (open points 10).
  const seesNone = who.role !== "owner" && (who.userId === undefined || (user_id !== undefined && user_id !== who.userId));
  return seesNone ? undefined : search;
}

/** A cursor that is given twice is invalid, as an empty one. */
const readCursor = (value: Parameter) => (Array.isArray(value) ? "" : (value as string | undefined));

function toPaginationError(error: unknown): never {
  throw error instanceof RunCursorInvalid ? agentErrors.invalid_pagination(`Invalid pagination: ${error.message}`) : error;
}
