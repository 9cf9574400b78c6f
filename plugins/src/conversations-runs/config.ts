import { record } from "@portico/core";
import * as v from "valibot";
import {
  APPROVAL_TIMEOUT_MS,
  AUTO_REPLAY_RETENTION_MS,
  BACKGROUND_CONCURRENCY,
  BACKGROUND_RETRIES_MS,
  BACKGROUND_TIMEOUT_MS,
  LONGEST_RETRY_MS,
  LONGEST_TIMEOUT_MS,
  MOST_RETRIES,
  SHOWN_BYTES,
  TOMBSTONE_RETENTION_MS,
} from "./limits.ts";

const milliseconds = v.pipe(v.number(), v.integer(), v.minValue(1000));

const positive = v.pipe(v.number(), v.finite(), v.minValue(0));
const limits = v.strictObject({
  /** Input and output tokens of model calls, from midnight to midnight. */
  tokensPerDay: v.optional(positive),
  /** Costs of model calls, in the currency of the prices. */
  moneyPerDay: v.optional(positive),
  /** Turns that execute at the same time in one process. */
  turnsAtOnce: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
  /** How long a turn may execute. */
  turnSeconds: v.optional(v.pipe(positive, v.minValue(1))),
});
const limitsByScope = v.strictObject({
  /** All turns together. Tokens and money of workflows and of the proxy count, too. */
  instance: v.optional(limits),
  /** The turns of each user. */
  user: v.optional(limits),
  /** The turns of each agent. `limits` in an `agent.json` can only lower them. */
  agent: v.optional(limits),
});

/** Limits of turns, by scope. */
export type LimitsByScope = v.InferOutput<typeof limitsByScope>;

const permission = v.picklist(["allow", "ask", "deny"]);
/** Rules for tools: by their IDs, and by risk level for the others. */
const toolPolicy = v.strictObject({
  /** How long a call waits for its decision, where the agent says nothing; default: 24 hours. */
  approvalTimeoutMs: v.optional(v.pipe(milliseconds, v.maxValue(LONGEST_TIMEOUT_MS)), APPROVAL_TIMEOUT_MS),
  tools: v.optional(record(v.string(), permission)),
  riskLevels: v.optional(
    v.strictObject({
      low: v.optional(permission),
      medium: v.optional(permission),
      high: v.optional(permission),
      critical: v.optional(permission),
    }),
  ),
});

/** The instance's rules for tools. */
export type InstanceToolPolicy = v.InferOutput<typeof toolPolicy>;

const runtimeEntries = {
  /** Which tools run, wait for a person, or never run. `toolPolicy` in an `agent.json` can only be stricter. Default: no rules. */
  toolPolicy: v.optional(toolPolicy, {}),
  /** Limits of turns. Limits of a day need an adapter of the port `usage`. Default: no limits. */
  limits: v.optional(limitsByScope, {}),
  /** How long a client may replay a request with identical IDs. The turn's output is kept for the same time. Default: 10 minutes. */
  autoReplayRetentionMs: v.optional(milliseconds, AUTO_REPLAY_RETENTION_MS),
  /** How long a request's ID is remembered after its turn ended; default: 24 hours. */
  tombstoneRetentionMs: v.optional(milliseconds, TOMBSTONE_RETENTION_MS),
  /**
   * How long runs are kept after their last turn, with their receipts, conversations and deliveries, in milliseconds. At least 24 hours and
   * `tombstoneRetentionMs`, because clients may look up their submissions for that long. Default: forever.
   */
  keepRunsMs: v.optional(v.pipe(v.number(), v.minValue(0))),
  /** Bytes of users' files that all executing turns together hold in memory to show them to models; default: 256 MiB. */
  shownBytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0)), SHOWN_BYTES),
};

/** What may be replayed is remembered. */
function isReplayRemembered({
  autoReplayRetentionMs,
  tombstoneRetentionMs,
}: Record<"autoReplayRetentionMs" | "tombstoneRetentionMs", number>) {
  return autoReplayRetentionMs <= tombstoneRetentionMs;
}
const REPLAY_EXPECTED = "autoReplayRetentionMs no longer than tombstoneRetentionMs";

/** Options of background turns. */
export const backgroundTurnsConfig = v.strictObject({
  /** Turns of one agent that execute at once; default: 4. */
  concurrencyPerAgent: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), BACKGROUND_CONCURRENCY),
  /** How long one turn may take; default: 30 minutes. */
  timeoutMs: v.optional(v.pipe(milliseconds, v.maxValue(LONGEST_TIMEOUT_MS)), BACKGROUND_TIMEOUT_MS),
  /**
   * Pauses before further attempts of a turn whose model's provider is away, in milliseconds. Without any, such a turn fails at once. Default:
   * 1, 5, 15 and 30 minutes.
   */
  retryDelaysMs: v.optional(v.pipe(v.array(v.pipe(milliseconds, v.maxValue(LONGEST_RETRY_MS))), v.maxLength(MOST_RETRIES)), [
    ...BACKGROUND_RETRIES_MS,
  ]),
});

/** Options of turns, without options of the area's routes. */
export const agentTurnsConfig = v.pipe(
  v.strictObject({ ...runtimeEntries, background: v.optional(backgroundTurnsConfig, {}) }),
  v.check((options) => isReplayRemembered(options), REPLAY_EXPECTED),
);

/** Options of conversations and runs. */
export const conversationsRunsConfig = v.pipe(
  v.strictObject({
    ...runtimeEntries,
    background: v.optional(backgroundTurnsConfig, {}),
    /** The version of the service in the handshake; default: `0.0.0`. */
    version: v.optional(v.string(), "0.0.0"),
  }),
  v.check((options) => isReplayRemembered(options), REPLAY_EXPECTED),
);

/** Options of the runtime of turns alone. */
export const agentRuntimeConfig = v.pipe(
  v.strictObject({
    ...runtimeEntries,
    /** Whether the app has the calls that decide approvals. Without them, calls that need one are refused. Default: true. */
    hasApprovals: v.optional(v.boolean(), true),
  }),
  v.check((options) => isReplayRemembered(options), REPLAY_EXPECTED),
);

export type AgentRuntimeOptions = v.InferInput<typeof agentRuntimeConfig>;
export type AgentRuntimeSettings = v.InferOutput<typeof agentRuntimeConfig>;

export type BackgroundTurnsOptions = v.InferInput<typeof backgroundTurnsConfig>;
