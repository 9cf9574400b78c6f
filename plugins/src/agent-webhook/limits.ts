/** Characters of an event's name (specification 4.3). */
export const EVENT_NAME_LENGTH = 128;

/** Characters of an event's prompt template (specification 4.3). */
export const PROMPT_TEMPLATE_LENGTH = 32_768;

/** Tools of one event (specification 4.3). */
export const TOOL_IDS = 512;

/** Model calls of a run where the event asks for no number, and at most (specification 4.3). */
export const MAX_TURNS = 5;
export const MAX_TURNS_MAXIMUM = 100;
