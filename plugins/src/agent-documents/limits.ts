/** Maximum size of the text of an `agent.json` in bytes of UTF-8. */
export const AGENT_TEXT_BYTES = 1024 * 1024;
/** Bytes of bodies with the text of an `agent.json`. JSON may write each byte of the text as two. */
export const AGENT_BODY_BYTES = 2 * AGENT_TEXT_BYTES + 64 * 1024;
/** Maximum problems of a text that are told. */
export const TEXT_PROBLEMS = 100;
