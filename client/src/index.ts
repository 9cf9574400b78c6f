export {
  type AgentClient,
  type AgentClientOptions,
  type AttachmentReceipt,
  type ConnectionState,
  connectAgent,
  type MediaLinks,
  type MediaMetadata,
  type Steered,
  type SubmitOptions,
  type WatchedTurn,
} from "./agent-client.ts";
export type {
  Approval,
  ApprovalAsked,
  ApprovalChange,
  ApprovalDecision,
  ApprovalEnded,
  DecidedApproval,
  ToolConsent,
} from "./approvals.ts";
export type { Run, RunCounts, RunSearch } from "./find-runs.ts";
export type { Query, QueryEnd, QueryMessage, QueryStarted } from "./query.ts";
export { requestDigest } from "./request-digest.ts";
export type { FollowUp, QueryOptions } from "./submission.ts";
export type { SubmissionState } from "./submission-state.ts";
export type { UploadOptions, UploadSource } from "./to-form.ts";
