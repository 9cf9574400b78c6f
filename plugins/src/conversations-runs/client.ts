// Code that clients and the service share. It runs in browsers, and imports schemas only as types.
export type { turnMessage, turnTerminal } from "./channel.ts";
export {
  MAX_TURNS,
  MAX_TURNS_MAXIMUM,
  QUERY_BYTES,
  QUERY_FILES,
  RECEIPTS_OFFSET_MAXIMUM,
  RUNS_LIMIT,
  TITLE_LENGTH,
} from "./limits.ts";
export type { followUpBody, startBody } from "./query-contract.ts";
export { canonicalContent } from "./canonical-content.ts";
