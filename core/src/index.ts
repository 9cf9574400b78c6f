// Assembling

// Writing an adapter
export { type Adapter, type AdapterSpec, defineAdapter } from "./adapter.ts";
export { type App, createApp } from "./app.ts";
export { areaOf } from "./area-of.ts";
export {
  type Channel,
  type ChannelContract,
  type ChannelHandlers,
  type ChannelMessage,
  type ChannelSay,
  defineChannel,
  openChannel,
} from "./channel.ts";
// Configuration
export {
  type ConfigFlag,
  type ConfigKey,
  type ConfigProblem,
  type ConfigSetting,
  type ConfigSources,
  ConfigUnusable,
  filePath,
  fromEnv,
  type LoadedConfig,
  listConfigKeys,
  loadConfig,
  nearestWord,
  type SecretInput,
  secret,
  secretFromEnv,
} from "./config.ts";
export { type CauseDescription, describeCause } from "./describe-cause.ts";
export { defineErrors, type Envelope, type ErrorMaker, type Faults, ServiceError, type ServiceErrorOptions } from "./error.ts";
export { BodyCut, BodySilent, BodyTooLarge, eachChunk, readBody } from "./http/body.ts";
export { allowsRange, type ConditionOutcome, checkConditions, httpDate, type Validators } from "./http/conditional.ts";
export { contentDisposition } from "./http/content-disposition.ts";
export { bearerToken, callerOf } from "./http/credential.ts";
export { isOriginAllowed, type OriginFacts } from "./http/is-origin-allowed.ts";
export { jsonList } from "./http/json-list.ts";
export { JsonPieces } from "./http/json-pieces.ts";
export { parseJsonBody } from "./http/parse-json-body.ts";
export { openUpload, type Upload, type UploadFlaw, UploadInvalid, type UploadOptions, UploadTooLarge } from "./http/upload.ts";
export { type ByteRange, readRange } from "./http/range.ts";
export { roomIn } from "./http/room-in.ts";
export { type SendingInput, sendStream, type StreamAnswer } from "./http/send-stream.ts";
export type { StreamedBody } from "./http/streamed-body.ts";
// Writing a plugin
export { definePlugin, type Plugin, type PluginSpec } from "./plugin.ts";
export { defineManyPort, definePort, type Filling, type Given, type ManyPort, type Needs, type Port } from "./port.ts";
export { orAborted } from "./or-aborted.ts";
export * as ports from "./ports/index.ts";
export type { RequestTrace } from "./ports/telemetry.ts";
export { definePreset, flattenPreset, type Preset } from "./preset.ts";
export { type ProbeOptions, probes } from "./probes.ts";
export { repeatUntilClosed } from "./repeat-until-closed.ts";
export {
  type Contract,
  type ContractDefaults,
  defineContract,
  type EventOf,
  type Exchange,
  type Guard,
  type Handler,
  type Handlers,
  type RequestHead,
  type RouteContract,
  type RouteInput,
  type RouteResult,
  reply,
  type Say,
} from "./route.ts";
export type { PluginScope, Scope } from "./scope.ts";
export { Secret } from "./secret.ts";
export type { Fetch, NodeListener, Surface, SurfaceOptions } from "./surface.ts";
export { isStoreAway } from "./store-away.ts";
export { writeAgain } from "./write-again.ts";
