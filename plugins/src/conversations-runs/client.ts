// What clients share with the service. It runs in browsers, and takes schemas for their types alone.
export type { turnMessage, turnTerminal } from "./channel.ts";
export { RECEIPTS_OFFSET_MAXIMUM, RUNS_LIMIT, SEARCH_CHARACTERS, TITLE_LENGTH } from "./limits.ts";
export type { followUpBody, startBody } from "./query-contract.ts";
export { canonicalContent } from "./requests/canonical-content.ts";
