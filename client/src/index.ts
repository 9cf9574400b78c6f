export {
  type AgentClient,
  type AgentClientOptions,
  type AttachmentReceipt,
  connectAgent,
  type MediaLinks,
  type MediaMetadata,
} from "./agent-client.ts";
export type { Query, QueryEnd, QueryMessage, QueryStarted } from "./query.ts";
export { requestDigest } from "./request-digest.ts";
export type { FollowUp, QueryOptions } from "./submission.ts";
export type { UploadOptions, UploadSource } from "./upload.ts";
