// Presets, and the apps that run them
export { type App, type AppOptions, createApp } from "./grammar/app.ts";
export { type HostContainer, type PortToken, portToken } from "./grammar/container.ts";
export { allAdapters, definePreset, type FlatPreset, flattenPreset, type OpenedPreset, type Preset } from "./grammar/preset.ts";
export type { Fetch, NodeListener, Surface, SurfaceOptions } from "./http/surface.ts";

// Ports, and the adapters that fill them
export { type Adapter, type AdapterSpec, defineAdapter } from "./grammar/adapter.ts";
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
} from "./grammar/port.ts";
export * as ports from "./ports/index.ts";
export {
  defineWorkflowNode,
  type KnownParts,
  nodeRulesOf,
  type WorkflowNodeAdapter,
  type WorkflowNodeSpec,
} from "./grammar/workflow-node.ts";
export type { RequestTrace } from "./ports/telemetry.ts";
export type { Scope } from "./grammar/scope.ts";

// Plugins: contracts, handlers, channels
export { areaOf } from "./grammar/plugin.ts";
export {
  type Channel,
  type ChannelContract,
  type ChannelHandlers,
  type ChannelMessage,
  type ChannelSay,
  defineChannel,
  openChannel,
} from "./grammar/channel.ts";
export { firstCharacters, hasAtMost, maxCharacters } from "./kit/text.ts";
export { jsonObject, objectOnly, record } from "./kit/json-object.ts";
export { definePlugin, type Plugin, type PluginSpec } from "./grammar/plugin.ts";
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
} from "./grammar/contract.ts";

// Callers and their credentials
export {
  type Access,
  callerGuard,
  defineAccess,
  instanceAccess,
  openAccess,
  ownerGuard,
  scraperAccess,
} from "./grammar/access.ts";
export { auditActor, type AuditWriter, auditWriter } from "./grammar/audit.ts";
export { accessErrors } from "./grammar/error.ts";
export { bearerToken, instanceScheme, ownerScheme } from "./grammar/access.ts";
export { CREDENTIAL_PREFIXES, type CredentialPrefix } from "./kit/credential-prefixes.ts";
export { createEndedSessions, type EndedSessions } from "./kit/signed-tokens.ts";
export { latestEnd, sessionIssuesSettings } from "./kit/signed-tokens.ts";
export { createInstanceSessions } from "./kit/signed-tokens.ts";
export { createSignedTokens, type SignedToken, type SignedTokenKind, type SignedTokens } from "./kit/signed-tokens.ts";
export { isOriginAllowed, type OriginFacts } from "./http/origin-rule.ts";

// Errors
export {
  defineErrors,
  type Envelope,
  type ErrorMaker,
  type Faults,
  ServiceError,
  type ServiceErrorOptions,
} from "./grammar/error.ts";
export { type CauseDescription, describeCause } from "./grammar/guard-call.ts";
export { findShortage, type Shortage, SHORTAGE_WORDS } from "./grammar/error.ts";

// Bodies that arrive
export { BodyCut, BodySilent, BodyTooLarge, eachChunk, readBody, takeArrived } from "./http/body.ts";
export { parseJsonBody } from "./http/declared-body.ts";
export { isExistingDay } from "./kit/time-text.ts";
export { hasInexactWhole, parseJson } from "./kit/parse-json.ts";
export { roomIn } from "./http/streams.ts";
export type { StreamedBody } from "./http/streamed-body.ts";
export { openUpload, type Upload, type UploadFlaw, UploadInvalid, type UploadOptions, UploadTooLarge } from "./http/upload.ts";
export { hasMoreLevels } from "./kit/parse-json.ts";
export { passStream, readStream, type StreamReading } from "./http/streams.ts";
export { notUtf8 } from "./kit/not-utf8.ts";

// Answers: long JSON, files and parts of files
export { acceptedCoding } from "./http/answer.ts";
export {
  allowsRange,
  type ConditionOutcome,
  checkConditions,
  checkReplacement,
  httpDate,
  type ReplacementOutcome,
  type Validators,
} from "./http/conditional.ts";
export { contentDisposition, dispositionName } from "./http/file-name.ts";
export { cleanFileName, cleanMediaType, isTextMediaType } from "./http/file-name.ts";
export { jsonList } from "./http/pieces.ts";
export { JsonPieces } from "./http/pieces.ts";
export { type ByteRange, readRange } from "./http/conditional.ts";
export { type SendingInput, sendStream, type StreamAnswer } from "./http/streams.ts";

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
} from "./config/load-config.ts";
export {
  duration,
  headerSecret,
  keeping,
  keepingMs,
  keySecret,
  milliseconds,
  optionsOf,
  settingName,
} from "./config/option-schemas.ts";
export { DURATION, parseDuration } from "./kit/time-text.ts";
export { guardCall, reportFailure, withHandledRejections } from "./grammar/guard-call.ts";
export { withoutEnd } from "./kit/text.ts";
export { createLive, type Live, type PrepareChange, type Replaceable, selectLive } from "./config/live.ts";
export { Overlap, type OverlapOptions } from "./kit/overlap.ts";
export { Secret } from "./config/secret.ts";

// Durable work: waits, repetition, what stores keep
export { checkDuration } from "./kit/clock.ts";
export { createRandomIds } from "./kit/random-ids.ts";
export { createSleep } from "./kit/clock.ts";
export { createSystemClock } from "./kit/clock.ts";
export { orAborted } from "./kit/clock.ts";
export {
  createPendingUploads,
  PENDING_SWEEP_MS,
  type PendingUploads,
  pendingUpload,
  pendingUploads,
} from "./kit/pending-uploads.ts";
export { addModelUsage } from "./kit/model-usage.ts";
export { readOncePerTurn } from "./kit/store-calls.ts";
export { readPages } from "./kit/store-calls.ts";
export { countRuns, RUN_COUNT, type RunCount, type RunGroup } from "./kit/count-runs.ts";
export { findPage, type FindPlace, type FindSource, type FoundPage } from "./kit/find-page.ts";
export {
  createRunIndex,
  type RunCriteria,
  type RunCriterion,
  RunCursorInvalid,
  type RunIndexSpec,
  type RunSearch,
  readRunCursors,
  readSearchWords,
  wordCriterion,
  writeRunCursors,
} from "./kit/run-index.ts";
export { RUN_SEARCH, SEARCH_TIME, searchTime } from "./kit/run-search.ts";
export { faultySchedule, type ScheduleAnswer, toScheduleAnswer } from "./kit/schedule-answer.ts";
export { wordsOf } from "./kit/find-page.ts";
export { isStoreAway } from "./kit/store-calls.ts";
export { findStoreMismatch, findStoreTooNew, stepsFrom, StoreForeign, StoreTooNew, StoreUnmigrated } from "./kit/store-format.ts";
export { retryWhileStoreAway, type StoreRetry } from "./kit/store-calls.ts";
export { writeAgain } from "./kit/store-calls.ts";
