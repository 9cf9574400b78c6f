import { isRecord } from "@portico/core/contract";
import { templateFields } from "../render-template.ts";

/** What a template can name of a notification besides its payload. */
export interface NotificationFacts {
  readonly sender: string;
  /** The vendor's name of the event. */
  readonly event: string;
}

/**
 * The fields with which a template is filled in. A notification nests, and its sender cannot be told to flatten it, so `{{a.b.0}}` is found by
 * its path here, unless the payload has a field of exactly this name. `{{webhook.sender}}` and `{{webhook.event}}` are the facts.
 */
export function notificationFields(
  template: string,
  payload: Readonly<Record<string, unknown>>,
  { sender, event }: NotificationFacts,
): Readonly<Record<string, unknown>> {
  const facts = new Map<string, unknown>([
    ["webhook.sender", sender],
    ["webhook.event", event],
  ]);
  const fields = templateFields(template).map((name) => [name, facts.get(name) ?? fieldAt(payload, name)]);
  return Object.fromEntries(fields);
}

function fieldAt(payload: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name];
  let value: unknown = payload;
  for (const key of name.split(".")) {
    // Lists have their items as own properties, and `length`, which is not a field.
    const isField = isRecord(value) || (Array.isArray(value) && key !== "length");
    if (!isField || !Object.hasOwn(value as object, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value;
}
