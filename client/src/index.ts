export { type AgentClient, type AgentClientOptions, connectAgent } from "./agent-client.ts";
export type { Query, QueryEnd, QueryMessage, QueryStarted } from "./query.ts";
export { requestDigest } from "./request-digest.ts";
export type { FollowUp, QueryOptions } from "./submission.ts";
