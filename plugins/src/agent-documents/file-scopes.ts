import type { ports } from "@portico/core";
import { withoutByteOrderMark } from "@portico/core/kit";

type Json = Readonly<Record<string, unknown>>;

/**
 * The events of a webhook that a text lets read the files of another user. The runs of an event may read the files of the user who saved it,
 * and callers cannot choose another one (4.3, rule 1). Events that already had that user keep it.
 */
export function foreignFileScopes(
  text: string,
  before: string | undefined,
  userId: string | undefined,
): ports.AgentTextProblem[] {
  const known = scopesOf(before);
  return [...scopesOf(text)].flatMap(([event, owner]): ports.AgentTextProblem[] => {
    if (owner === userId || owner === known.get(event)) return [];
    const path = ["webhooks", "events", event, "fileScope", "userId"];
    return [{ severity: "error", path, message: "Expected your own user id: an event reads the files of the user who saved it" }];
  });
}

/** The user of each event that names one. */
function scopesOf(text: string | undefined): ReadonlyMap<string, unknown> {
  const events = memberOf(memberOf(parse(text), "webhooks"), "events");
  if (!isObject(events)) return new Map();
  const named = Object.entries(events).map(
    ([event, value]) => [event, memberOf(memberOf(value, "fileScope"), "userId")] as const,
  );
  return new Map(named.filter(([, owner]) => owner !== undefined));
}

function memberOf(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

function parse(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(withoutByteOrderMark(text));
  } catch {
    return undefined;
  }
}
