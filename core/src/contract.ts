/**
 * Everything that contracts are written with, and no server code. A contract that imports only this entry point can be loaded by
 * clients, also in browsers. `visibleText` and `visibleJson` are for all pages that show texts of others.
 */
export { accessErrors, ownerErrors, pageEnvelope } from "./grammar/error.ts";
export { firstCharacters, hasAtMost, maxCharacters } from "./kit/text.ts";
export { type ChannelContract, type ChannelMessage, defineChannel } from "./grammar/channel.ts";
export {
  defineErrors,
  type Envelope,
  type ErrorMaker,
  type Faults,
  ServiceError,
  type ServiceErrorOptions,
} from "./grammar/error.ts";
export { CREDENTIAL_PREFIXES } from "./kit/credential-prefixes.ts";
export { isExistingDay } from "./kit/time-text.ts";
export { withoutByteOrderMark } from "./kit/text.ts";
export { isRecord, jsonObject, objectOnly, record } from "./kit/json-object.ts";
export { callFilters, modelCallers, modelUsage } from "./kit/model-usage.ts";
export { RUN_SEARCH, searchTime } from "./kit/run-search.ts";
export { type ScheduleAnswer, scheduleAnswer, SCHEDULE_STATES } from "./kit/schedule-answer.ts";
export { errorBody } from "./model-protocols/errors.ts";
export { isJsonObject } from "./model-protocols/json.ts";
export type { ModelErrorKind } from "./model-protocols/model-events.ts";
export { TOOL_ERROR_MARK } from "./model-protocols/turns/tool-error-mark.ts";
export { readParameters } from "./kit/json-object.ts";
export { visibleJson, visibleText } from "./kit/text.ts";
export { type Contract, type ContractDefaults, defineContract, type RouteContract, reply } from "./grammar/contract.ts";
