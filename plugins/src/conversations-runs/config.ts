import * as v from "valibot";
import { AUTO_REPLAY_RETENTION_MS, TOMBSTONE_RETENTION_MS } from "./limits.ts";

const milliseconds = v.pipe(v.number(), v.integer(), v.minValue(1000));

/** Options of conversations and runs. */
export const conversationsRunsConfig = v.pipe(
  v.strictObject({
    /** What the handshake reports of the service; default: `0.0.0`. */
    version: v.optional(v.string(), "0.0.0"),
    /** What the handshake reports of the areas beside this one. */
    capabilities: v.optional(
      v.strictObject({
        webhookManagement: v.optional(v.boolean(), false),
        media: v.optional(v.boolean(), false),
        attachments: v.optional(v.boolean(), false),
        safeTokens: v.optional(v.boolean(), false),
      }),
      {},
    ),
    /** How long a client may replay a request with identical IDs; what a turn said is kept as long. Default: 10 minutes. */
    autoReplayRetentionMs: v.optional(milliseconds, AUTO_REPLAY_RETENTION_MS),
    /** How long a request's ID is remembered after its turn ended; default: 24 hours. */
    tombstoneRetentionMs: v.optional(milliseconds, TOMBSTONE_RETENTION_MS),
  }),
  v.check(
    ({ autoReplayRetentionMs, tombstoneRetentionMs }) => autoReplayRetentionMs <= tombstoneRetentionMs,
    "autoReplayRetentionMs no longer than tombstoneRetentionMs",
  ),
);

export type ConversationsRunsSettings = v.InferOutput<typeof conversationsRunsConfig>;
