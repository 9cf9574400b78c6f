// Presets, and the apps that run them
export { type App, type AppOptions, createApp } from "./app.ts";
export { type HostContainer, type PortToken, portToken } from "./container.ts";
export { allAdapters, definePreset, type FlatPreset, flattenPreset, type OpenedPreset, type Preset } from "./preset.ts";
export type { Fetch, NodeListener, Surface, SurfaceOptions } from "./surface.ts";

// Ports, and the adapters that fill them
export { type Adapter, type AdapterSpec, defineAdapter } from "./adapter.ts";
export {
  defineManyPort,
  definePort,
  type Filling,
  type Given,
  later,
  type ManyPort,
  type Needs,
  optional,
  type Port,
} from "./port.ts";
export * as ports from "./ports/index.ts";
export {
  defineWorkflowNode,
  type KnownParts,
  nodeRulesOf,
  type WorkflowNodeAdapter,
  type WorkflowNodeSpec,
} from "./workflow-node.ts";
export type { RequestTrace } from "./ports/telemetry.ts";
export type { Scope } from "./scope.ts";

// Plugins: contracts, handlers, channels
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
export { firstCharacters, hasAtMost, maxCharacters } from "./characters.ts";
export { jsonObject, objectOnly, record } from "./json-object.ts";
export { definePlugin, type Plugin, type PluginSpec } from "./plugin.ts";
export {
  type Contract,
  type ContractDefaults,
  defineContract,
  type EventOf,
  type Exchange,
  type Guard,
  type Handler,
  type Handlers,
  type ReconnectTime,
  type RequestHead,
  type RouteContract,
  type RouteInput,
  type RouteResult,
  reply,
  type Say,
} from "./route.ts";

// Callers and their credentials
export { type Access, defineAccess, instanceAccess, openAccess, scraperAccess } from "./access.ts";
export { auditActor, type AuditWriter, auditWriter } from "./audit-actor.ts";
export { accessErrors } from "./access-errors.ts";
export { bearerToken, callerOf, instanceScheme, ownerScheme } from "./http/credential.ts";
export { CREDENTIAL_PREFIXES, type CredentialPrefix } from "./credential-prefixes.ts";
export { createEndedSessions, type EndedSessions } from "./ended-sessions.ts";
export { latestEnd } from "./issued-by-sessions.ts";
export { createInstanceSessions } from "./instance-sessions.ts";
export { createSignedTokens, type SignedToken, type SignedTokenKind, type SignedTokens } from "./signed-tokens.ts";
export { isOriginAllowed, type OriginFacts } from "./http/is-origin-allowed.ts";

// Errors
export { defineErrors, type Envelope, type ErrorMaker, type Faults, ServiceError, type ServiceErrorOptions } from "./error.ts";
export { type CauseDescription, describeCause } from "./describe-cause.ts";
export { findShortage, type Shortage, SHORTAGE_WORDS } from "./shortage.ts";

// Bodies that arrive
export { BodyCut, BodySilent, BodyTooLarge, eachChunk, readBody, takeArrived } from "./http/body.ts";
export { parseJsonBody } from "./http/parse-json-body.ts";
export { isExistingDay } from "./is-existing-day.ts";
export { hasInexactWhole, parseJson, quoteLongNumbers } from "./parse-json.ts";
export { roomIn } from "./http/room-in.ts";
export type { StreamedBody } from "./http/streamed-body.ts";
export { openUpload, type Upload, type UploadFlaw, UploadInvalid, type UploadOptions, UploadTooLarge } from "./http/upload.ts";
export { hasMoreLevels } from "./json-levels.ts";
export { passStream, readStream, type StreamReading } from "./http/read-stream.ts";
export { notUtf8 } from "./not-utf8.ts";

// Answers: long JSON, files and parts of files
export { acceptedCoding } from "./http/accepted-coding.ts";
export {
  allowsRange,
  type ConditionOutcome,
  checkConditions,
  checkReplacement,
  httpDate,
  type ReplacementOutcome,
  type Validators,
} from "./http/conditional.ts";
export { contentDisposition, dispositionName } from "./http/content-disposition.ts";
export { cleanFileName, cleanMediaType, isTextMediaType } from "./http/file-name.ts";
export { jsonList } from "./http/json-list.ts";
export { JsonPieces } from "./http/json-pieces.ts";
export { type ByteRange, readRange } from "./http/range.ts";
export { type SendingInput, sendStream, type StreamAnswer } from "./http/send-stream.ts";

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
  type SecretFile,
  type SecretInput,
  secret,
  secretFromEnv,
} from "./config.ts";
export { DURATION, parseDuration } from "./parse-duration.ts";
export { guardCall, reportFailure, withHandledRejections } from "./guard-call.ts";
export { withoutEnd } from "./without-end.ts";
export { createLive, type Live, type PrepareChange, type Replaceable, selectLive } from "./live.ts";
export { Overlap, type OverlapOptions } from "./overlap.ts";
export { Secret } from "./secret.ts";

// Durable work: waits, repetition, what stores keep
export { checkDuration } from "./clock/check-duration.ts";
export { createSleep } from "./clock/create-sleep.ts";
export { createSystemClock } from "./clock/system-clock.ts";
export { orAborted } from "./or-aborted.ts";
export { createPendingUploads, PENDING_SWEEP_MS, type PendingUploads, pendingUpload, pendingUploads } from "./pending-uploads.ts";
export { addModelUsage } from "./add-model-usage.ts";
export { readOncePerTurn } from "./read-once-per-turn.ts";
export { readPages } from "./read-pages.ts";
export { readFindCursor, toFindCursor } from "./find/find-cursor.ts";
export { findPage, type FindOrder, type FindPlace, type FindSource, type FoundPage } from "./find/find-page.ts";
export { createTagIndex, type Tagged, type TagIndex } from "./find/tag-index.ts";
export { wordsOf } from "./find/words-of.ts";
export { isStoreAway } from "./store-away.ts";
export { findStoreMismatch, findStoreTooNew, stepsFrom, StoreForeign, StoreTooNew, StoreUnmigrated } from "./store-format.ts";
export { retryWhileStoreAway, type StoreRetry } from "./store-retry.ts";
export { writeAgain } from "./write-again.ts";
