import { type FindPlace, hasAtMost, isExistingDay, readFindCursor, toFindCursor, wordsOf } from "@portico/core";
import { agentErrors } from "../errors.ts";
import { SEARCH_CHARACTERS, SEARCH_LIMIT, SEARCH_WORDS } from "../limits.ts";
import { type Parameter, readFilter, readLimit } from "../pagination.ts";
import { askedOf, type RunSearch } from "../runs/run-search.ts";
import { type RunStatus, runTransitions } from "../runs/run-state.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Finds runs, the newest first: an owner among all, a member among its own. */
export function searchRuns({ runtime: { runs } }: ConversationServices): ConversationHandlers["searchRuns"] {
  return async ({ query, who }) => {
    const limit = readLimit(query.limit, SEARCH_LIMIT);
    const userId = readFilter("user_id", query.user_id);
    const asked: RunSearch = {
      userId: who.role === "owner" ? userId : who.userId,
      agentId: readFilter("agent_id", query.agent_id),
      status: readStatus(readFilter("status", query.status)),
      isBackground: readFlag("background", query.background),
      isArchived: readFlag("archived", query.archived),
      isInterrupted: readFlag("interrupted", query.interrupted),
      delegatedBy: readFilter("delegated_by", query.delegated_by),
      parentRunId: readFilter("parent_run_id", query.parent_run_id),
      from: readTime("started_from", query.started_from),
      before: readTime("started_before", query.started_before),
      words: readWords(query.q),
    };
    const place = { after: readPlace("after", query.after, asked), before: readPlace("before", query.before, asked) };
    if (place.after && place.before) throw agentErrors.invalid_pagination("Invalid pagination: give after or before, not both");
    // To a member, runs of others are missing (open points 10).
    const seesNone = who.role !== "owner" && (who.userId === undefined || (userId !== undefined && userId !== who.userId));
    if (seesNone) return { runs: [] };
    const { items, next, previous } = await runs.search(asked, limit, place);
    return {
      runs: [...items],
      ...(next && { next: toFindCursor(askedOf(asked), next) }),
      ...(previous && { previous: toFindCursor(askedOf(asked), previous) }),
    };
  };
}

function readPlace(name: "after" | "before", value: Parameter, asked: RunSearch): FindPlace | undefined {
  if (value === undefined) return undefined;
  const place = typeof value === "string" ? readFindCursor(askedOf(asked), value) : undefined;
  const source = name === "after" ? "next" : "previous";
  if (!place)
    throw agentErrors.invalid_pagination(`Invalid pagination: ${name} must be the ${source} of a page of the same search`);
  return place;
}

function readWords(value: Parameter): readonly string[] {
  const text = readFilter("q", value);
  if (text === undefined) return [];
  const words = hasAtMost(SEARCH_CHARACTERS, text) ? wordsOf(text, SEARCH_WORDS + 1) : [];
  if (words.length > 0 && words.length <= SEARCH_WORDS) return words;
  throw invalid("q", `1-${SEARCH_WORDS} words of letters and digits, with at most ${SEARCH_CHARACTERS} characters`);
}

function readStatus(value: string | undefined): RunStatus | undefined {
  if (value === undefined || Object.hasOwn(runTransitions, value)) return value as RunStatus | undefined;
  throw invalid("status", Object.keys(runTransitions).join(", "));
}

function readFlag(name: string, value: Parameter): boolean | undefined {
  const text = readFilter(name, value);
  if (text === undefined || text === "true" || text === "false") return text === undefined ? undefined : text === "true";
  throw invalid(name, "true or false");
}

/** ISO 8601 with a zone: a time without one would mean another in each process. */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

function readTime(name: string, value: Parameter): string | undefined {
  const text = readFilter(name, value);
  if (text === undefined) return undefined;
  const time = TIME.test(text) && isExistingDay(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw invalid(name, "a date, or a time with its zone, in ISO 8601");
  return new Date(time).toISOString();
}

function invalid(name: string, expected: string) {
  return agentErrors.invalid_filter(`Invalid filter: ${name} must be ${expected}`);
}
