/** Characters of an event's name (specification 4.3). */
export const EVENT_NAME_LENGTH = 128;

/** Characters of an event's prompt template (specification 4.3). */
export const PROMPT_TEMPLATE_LENGTH = 32_768;

/** Tools of one event (specification 4.3). */
export const TOOL_IDS = 512;

/** Model calls of a run: the default if the event sets no number, and the maximum (specification 4.3). */
export const MAX_TURNS = 5;
/** Most model calls that an event can ask for. */
export const MAX_TURNS_MAXIMUM = 100;

/** Bytes of the body with which an event is saved (specification 8). */
export const EVENT_SAVE_BYTES = 128 * 1024;
/** Bytes of a trigger's body (specification 8). */
export const TRIGGER_BYTES = 1024 * 1024;

/** Deliveries of a page: the default if the request sets no limit, and the maximum (specification 8). */
export const DELIVERIES_LIMIT = 50;
export const DELIVERIES_LIMIT_MAXIMUM = 200;

/** Characters of a rendered prompt. A template can name one long field many times. */
export const PROMPT_CHARACTERS = 4 * 1024 * 1024;

/** Characters of an event's name that an error repeats. */
export const REPEATED_NAME_LENGTH = 128;

/** Senders of one agent. */
export const SENDERS = 32;
/** Characters of a sender's name. */
export const SENDER_NAME_LENGTH = 64;
/** Events that one sender maps. */
export const SENDER_EVENTS = 256;
/** Characters of a sender's own name for an event. */
export const SENDER_EVENT_LENGTH = 128;
/** Characters of a sender's secret. */
export const SENDER_SECRET_LENGTH = 512;
/** Bytes of a sender's notification. */
export const NOTIFICATION_BYTES = 4 * 1024 * 1024;
/** How far the signed time of a notification may be from this server's clock, in milliseconds: what Stripe, Slack and Standard Webhooks recommend. */
export const TIMESTAMP_TOLERANCE_MS = 5 * 60_000;
/** How long the former secret of a sender is valid after its replacement, in milliseconds. */
export const FORMER_SECRET_MS = 24 * 60 * 60_000;

/** Received events of a page: the default and the maximum. */
export const RECEIVED_LIMIT = 50;
export const RECEIVED_LIMIT_MAXIMUM = 200;
/** How long what arrived is listed, in milliseconds. */
export const RECEIVED_MS = 30 * 24 * 60 * 60_000;
/** Records of one agent that are kept, by what became of the events. Those of refused events never push out accepted ones. */
export const KEPT_RECEIVED = { accepted: 1000, ignored: 200, refused: 200 } as const;
/** How long a process gathers accepted events for one write, in milliseconds, and how many. */
export const GATHER_MS = 1000;
export const GATHERED_EVENTS = 1000;
/** How often a process writes the count of events that were not accepted, in milliseconds. */
export const QUIET_MS = 10_000;
