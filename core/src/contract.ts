/**
 * Everything that contracts are written with, and no server code. A contract that imports only this entry point can be loaded by
 * clients, also in browsers. `visibleText` and `visibleJson` are for all pages that show texts of others.
 */
export { accessErrors } from "./access-errors.ts";
export { firstCharacters, hasAtMost, maxCharacters } from "./characters.ts";
export { type ChannelContract, type ChannelMessage, defineChannel } from "./channel.ts";
export { defineErrors, type Envelope, type ErrorMaker, type Faults, ServiceError, type ServiceErrorOptions } from "./error.ts";
export { isExistingDay } from "./is-existing-day.ts";
export { withoutByteOrderMark } from "./kit/without-byte-order-mark.ts";
export { isRecord, jsonObject, objectOnly, record } from "./json-object.ts";
export { callFilters, modelCallers, modelUsage } from "./model-usage.ts";
export { quoteLongNumbers } from "./parse-json.ts";
export { readParameters } from "./read-parameters.ts";
export { visibleJson, visibleText } from "./visible-text.ts";
export { type Contract, type ContractDefaults, defineContract, type RouteContract, reply } from "./route.ts";
