export {
  type AgentEngine,
  type AgentTurn,
  agentEngines,
  type ConversationMessage,
  type MessagePart,
  type PausedCall,
  type Saying,
  type TurnContext,
  type TurnEnding,
  type TurnOutcome,
  TurnPaused,
  type TurnSummary,
  type TurnTool,
  type TurnToolCall,
  type TurnUsage,
} from "./agent-engines.ts";
export {
  AGENT_ID,
  type Agent,
  type AgentContext,
  type AgentDefinition,
  type AgentEffort,
  type AgentSchedule,
  type AgentLimits,
  type Agents,
  AgentsUnavailable,
  agents,
  type GitState,
  type ListAgents,
  SKILL_FILE_BYTES,
  type ToolPermission,
  type ToolPolicy,
  type ToolRules,
} from "./agents.ts";
export { type Area, areas } from "./areas.ts";
export {
  type Audit,
  type AuditActor,
  AuditCursorInvalid,
  type AuditEntry,
  type AuditFact,
  type AuditPage,
  type AuditQuery,
  audit,
} from "./audit.ts";
export {
  type BackgroundTurn,
  type BackgroundTurnEnd,
  type BackgroundTurns,
  backgroundTurns,
  type DeliveredMessage,
  type Delivery,
  type DeliveryPage,
  type MessageBlock,
  type TurnListener,
  type TurnOrigin,
} from "./background-turns.ts";
export {
  BlobExists,
  type Blobs,
  type BlobSource,
  type BlobStat,
  BlobsUnavailable,
  BlobTooLarge,
  blobs,
  isBlobKey,
  type LocatedBlob,
  type OpenBlob,
  type OpenBlobOptions,
  type PutBlobOptions,
  type StoredBlob,
} from "./blobs.ts";
export { BUS_MESSAGE_BYTES, type Bus, type BusListener, type BusSubscription, bus, type PublishOptions } from "./bus.ts";
export { type Clock, clock, type Timer } from "./clock.ts";
export {
  DOCUMENT_BYTES,
  type Document,
  DocumentConflict,
  type Documents,
  DocumentsUnavailable,
  documents,
  isDocumentName,
} from "./documents.ts";
export {
  type ChoreOptions,
  type EarlierResult,
  type Engine,
  EngineFenced,
  EngineStopped,
  EngineUnavailable,
  engine,
  type StartOptions,
  StepInterrupted,
  WorkCancelled,
  type WorkContext,
  type WorkOptions,
  WorkParked,
  type WorkStatus,
} from "./engine.ts";
export { type Caller, type Identity, identity, type Role } from "./identity.ts";
export { type Ids, ids } from "./ids.ts";
export { type EventLog, LOG_ENTRY_BYTES, type LogEntry, LogEntryTooLarge, LogUnavailable, log, type ReadOptions } from "./log.ts";
export {
  type ChatDialect,
  type ModelAnswer,
  type ModelCall,
  type ModelProtocol,
  type ModelProvider,
  ModelTimeout,
  ModelUnreachable,
  models,
  PUBLISHED_CHAT_DIALECT,
} from "./models.ts";
export { type NodePath, type NodePaths, nodePaths } from "./node-paths.ts";
export { type LocatedSocket, type Presence, PresenceUnavailable, presence } from "./presence.ts";
export { READINESS_MS, type Readiness, type ReadinessCheck, type ReadinessFailure, readiness } from "./readiness.ts";
export {
  ConnectionRefused,
  type Realtime,
  type RealtimeConnections,
  type RealtimeService,
  type RealtimeSocket,
  type Resumption,
  realtime,
} from "./realtime.ts";
export {
  type Collection,
  type CollectionSpec,
  type Expected,
  type Page,
  type Place,
  type Query,
  RecordConflict,
  RecordCursorInvalid,
  type Records,
  RecordsUnavailable,
  RecordsUnindexed,
  records,
  STORE_LOSSES,
  type Stored,
  type StoreLoss,
  type Write,
} from "./records.ts";
export { SealBroken, type Sealing, SealingUnavailable, sealing } from "./sealing.ts";
export { isSigningPurpose, type Signing, SigningUnavailable, signing } from "./signing.ts";
export { type KeptSecret, type Secrets, SecretsUnavailable, secrets } from "./secrets.ts";
export {
  type Gauge,
  type GaugeReading,
  type GaugeValue,
  type Log,
  type LogFields,
  type MeasuredModelCall,
  type RequestBegin,
  type RequestFacts,
  type RequestTrace,
  type Telemetry,
  telemetry,
  type WorkBegin,
  type WorkContent,
  type WorkTrace,
} from "./telemetry.ts";
export {
  type RiskLevel,
  ToolArgumentsInvalid,
  type ToolCall,
  type ToolCaller,
  type ToolContent,
  type ToolDefinition,
  ToolNotFound,
  type ToolResult,
  type ToolSource,
  ToolsUnavailable,
  tools,
} from "./tools.ts";
export {
  type Schedule,
  type Schedules,
  type ScheduleSource,
  type ScheduleState,
  type ScheduleOverlap,
  type ScheduleTiming,
  schedules,
} from "./schedules.ts";
export {
  USAGE_GROUPS,
  USAGE_STEPS,
  type Usage,
  type UsageCall,
  type UsageDay,
  type UsageEnd,
  type UsageField,
  type UsageGroup,
  type UsageLatency,
  type UsagePoint,
  type UsageQuery,
  type UsageReport,
  type UsageSeries,
  type UsageSeriesQuery,
  type UsageSeriesReport,
  type UsageSubject,
  type UsageSums,
  UsageTooWide,
  usage,
} from "./usage.ts";
export { type UsedFiles, type UserFile, type UserFiles, UserFilesUnavailable, userFiles } from "./user-files.ts";
export { type WebSocketPath, type WebSocketPaths, webSocketPaths } from "./websocket-paths.ts";
export {
  NODE_OUTPUT_BYTES,
  NODE_OUTPUT_LEVELS,
  NodeFailed,
  type NodeFault,
  type NodeFiles,
  type NodeRules,
  type NodeStep,
  type NodeWork,
  type RunFile,
  type WorkflowNode,
  workflowNodes,
  FAILED_BODY_BYTES,
  type FailedAnswer,
  type NodeFailedOptions,
} from "./workflow-nodes.ts";
