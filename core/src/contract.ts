/**
 * Everything that contracts are written with, and no server code. A contract that imports only this entry point can be loaded by
 * clients, also in browsers.
 */
export { accessErrors } from "./access-errors.ts";
export { type ChannelContract, type ChannelMessage, defineChannel } from "./channel.ts";
export { defineErrors, type Envelope, type ErrorMaker, type Faults, ServiceError, type ServiceErrorOptions } from "./error.ts";
export { callFilters, modelCallers, modelUsage } from "./model-usage.ts";
export { type Contract, type ContractDefaults, defineContract, type RouteContract, reply } from "./route.ts";
