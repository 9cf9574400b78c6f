/**
 * What contracts are written with, and nothing of what serves them: a contract that imports this door alone can be loaded by clients, in
 * browsers too.
 */
export { type ChannelContract, type ChannelMessage, defineChannel } from "./channel.ts";
export { defineErrors, type Envelope, type ErrorMaker, type Faults, ServiceError, type ServiceErrorOptions } from "./error.ts";
export { type Contract, type ContractDefaults, defineContract, type RouteContract, reply } from "./route.ts";
