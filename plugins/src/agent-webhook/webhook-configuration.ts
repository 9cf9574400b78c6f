import { isRecord, maxCharacters } from "@portico/core/contract";
import * as v from "valibot";
import { EVENT_NAME_LENGTH, MAX_TURNS, MAX_TURNS_MAXIMUM, PROMPT_TEMPLATE_LENGTH, TOOL_IDS } from "./limits.ts";

/** The known keys of `webhooks` in an `agent.json` (open points 5). */
export interface WebhookConfiguration {
  readonly enabled: boolean;
  /** Events by name. It is a map, so that inherited names such as `constructor` are not found. */
  readonly events: ReadonlyMap<string, WebhookEvent>;
}

export interface WebhookEvent {
  readonly promptTemplate: string;
  readonly toolIds: readonly string[];
  readonly maxTurns: number;
  /** The user whose files the event's runs may read. Each save records it. An event that people wrote into the file may have no user. */
  readonly fileScope?: { readonly userId: string } | undefined;
}

const EVENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const FORBIDDEN_NAMES: readonly string[] = ["constructor", "prototype", "__proto__"];

/** Whether an event can have this name (specification 4.3). */
export function isEventName(name: string): boolean {
  return name.length <= EVENT_NAME_LENGTH && EVENT_NAME.test(name) && !FORBIDDEN_NAMES.includes(name);
}

const eventFields = {
  promptTemplate: v.pipe(v.string(), v.nonEmpty(), maxCharacters(PROMPT_TEMPLATE_LENGTH)),
  toolIds: v.pipe(
    v.array(v.pipe(v.string(), v.nonEmpty())),
    v.maxLength(TOOL_IDS),
    v.check((ids) => new Set(ids).size === ids.length, "no duplicates"),
  ),
  maxTurns: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_TURNS_MAXIMUM)), MAX_TURNS),
};

/** The body with which an event is saved (specification 4.3). Other fields are refused. */
export const eventBody = v.strictObject(eventFields);

export type EventBody = v.InferOutput<typeof eventBody>;

// The id is in an index of the runs. If stores refused it there, an accepted event could never have a run.
const userId = v.pipe(
  v.string(),
  v.nonEmpty(),
  v.check((id) => id.isWellFormed() && !id.includes("\0"), "well-formed characters without U+0000"),
);

// People and other programs may keep further keys in the file, on every level, so unknown keys are allowed. Names of events are read by hand, because
// `v.record` leaves out those that objects inherit instead of refusing them.
const webhooks = v.object({
  // A missing version means 1. Later versions write a higher number for a new form, which is refused here instead of being misread.
  format: v.optional(v.literal(1)),
  enabled: v.optional(v.boolean(), false),
  events: v.optional(
    v.pipe(
      v.custom<object>(isRecord, "an object"),
      v.transform((events) => new Map<string, unknown>(Object.entries(events))),
      v.map(
        v.pipe(v.string(), v.check(isEventName, "a name of an event")),
        v.object({ ...eventFields, fileScope: v.optional(v.object({ userId })) }),
      ),
    ),
    {},
  ),
});

const NEVER_CONFIGURED: WebhookConfiguration = { enabled: false, events: new Map() };
const known = new WeakMap<object, { readonly configuration: WebhookConfiguration | undefined }>();

/**
 * Reads the `webhooks` of an agent's definition. Missing webhooks count as never configured. Returns undefined if any part, even one event,
 * does not match the schema. The result is cached as long as the object lives. The object of an agent's definition lives until its file
 * changes, so that triggers need not parse again.
 */
export function readWebhooks(value: unknown): WebhookConfiguration | undefined {
  if (value === undefined) return NEVER_CONFIGURED;
  if (!isRecord(value)) return undefined;
  const read = known.get(value) ?? { configuration: parse(value) };
  known.set(value, read);
  return read.configuration;
}

function parse(value: object): WebhookConfiguration | undefined {
  const parsed = v.safeParse(webhooks, value, { abortEarly: true });
  return parsed.success ? parsed.output : undefined;
}
