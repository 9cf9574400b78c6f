import { duration, fromEnv, keeping, milliseconds, record } from "@portico/core";
import * as v from "valibot";
import {
  AUTO_REPLAY_RETENTION_MS,
  BACKGROUND_CONCURRENCY,
  BACKGROUND_RETRIES,
  BACKGROUND_TIMEOUT_MS,
  MOST_RETRIES,
  SHOWN_BYTES,
  TOMBSTONE_RETENTION_MS,
} from "./limits.ts";

const amount = () => v.pipe(v.number(), v.minValue(0), v.finite());
const count = () => v.pipe(v.number(), v.integer(), v.minValue(1));
const limitsOf = (words: string) =>
  v.optional(
    v.pipe(
      v.strictObject({
        tokensPerDay: v.optional(v.pipe(amount(), v.description("Input and output tokens of model calls per day."))),
        moneyPerDay: v.optional(v.pipe(amount(), v.description("Costs of model calls per day, in the currency of the prices."))),
        turnsAtOnce: v.optional(v.pipe(count(), v.description("Turns at the same time, of all processes."))),
        turnSeconds: v.optional(v.pipe(v.number(), v.finite(), v.minValue(1), v.description("Seconds that a turn may take."))),
      }),
      v.description(words),
    ),
  );
const limitsByScope = v.strictObject({
  instance: limitsOf("All turns together."),
  user: limitsOf("The turns of each user."),
  agent: limitsOf("The turns of each agent. `limits` in an `agent.json` can only lower them."),
});

/** Limits of turns, by scope. */
export type LimitsByScope = v.InferOutput<typeof limitsByScope>;

const permission = v.picklist(["allow", "ask", "deny"]);
const ruleOf = (level: string) => v.optional(v.pipe(permission, v.description(`For tools of risk level \`${level}\`.`)));
const toolPolicy = v.pipe(
  v.strictObject({
    tools: v.optional(v.pipe(record(v.string(), permission), v.description("`allow`, `ask` or `deny`, by tool ID."))),
    riskLevels: v.optional(
      v.pipe(
        v.strictObject({ low: ruleOf("low"), medium: ruleOf("medium"), high: ruleOf("high"), critical: ruleOf("critical") }),
        v.description("The same by risk level, for tools without a rule of their own."),
      ),
    ),
    approvalTimeout: v.optional(
      v.pipe(
        duration("1s", "24d", "30m or 8h"),
        v.description("How long a call waits for a person's decision, where the agent's own policy does not say."),
      ),
      "24h",
    ),
  }),
  v.description(
    "Which tools run at once, wait for a person's approval, or never run. `toolPolicy` in an `agent.json` can only be stricter.",
  ),
);

/** The instance's rules for tools. */
export type InstanceToolPolicy = v.InferOutput<typeof toolPolicy>;

/** Limits of turns, which presets have as a setting of the instance. Limits of a day need an adapter of the port `usage`. */
export const limitsSettings = { limits: v.optional(limitsByScope, {}) };

/** Options of turns that presets have as settings of agents. */
export const turnsSettings = {
  keepRuns: v.optional(
    fromEnv(
      "PORTICO_AGENT_KEEP_RUNS",
      keeping(),
      "How long runs of agents are kept after their last turn, with their receipts, conversations and deliveries; at least 24h.",
    ),
    "forever",
  ),
  keepMemories: v.optional(
    fromEnv(
      "PORTICO_AGENT_KEEP_MEMORIES",
      keeping(),
      "How long what an agent remembers of a user is kept after its last change.",
    ),
    "forever",
  ),
  toolPolicy: v.optional(toolPolicy, {}),
};

/** The ID of the provider that serves agents as models. */
export const AGENTS_PROVIDER = "agents";

/** Options of agents that are models, which presets have as a setting of agents. */
export const agentModelsSettings = {
  asModels: v.optional(
    v.strictObject({
      userId: v.optional(
        fromEnv(
          "PORTICO_AGENT_AS_MODELS_USER",
          v.pipe(v.string(), v.nonEmpty()),
          "The user of the turns of agents that are called as models. With it, the model proxy has the provider `agents`, which serves each agent as a model.",
        ),
      ),
    }),
    {},
  ),
};

/** Options of background turns that presets have as settings of webhooks. */
export const backgroundTurnsSettings = {
  concurrencyPerAgent: v.optional(
    fromEnv(
      "PORTICO_WEBHOOK_CONCURRENCY_PER_AGENT",
      count(),
      "Events that one agent processes at the same time; others wait in a queue.",
    ),
    BACKGROUND_CONCURRENCY,
  ),
  timeoutMs: v.optional(
    fromEnv("PORTICO_WEBHOOK_TIMEOUT_MS", milliseconds(1000), "Maximum duration of the work on one event."),
    BACKGROUND_TIMEOUT_MS,
  ),
};

/** Pauses between the attempts of a background turn, which presets have as a setting of agents. */
export const backgroundRetriesSettings = {
  backgroundRetries: v.optional(
    fromEnv(
      "PORTICO_AGENT_BACKGROUND_RETRIES",
      v.pipe(v.array(duration("1s", "24h", "5m")), v.maxLength(MOST_RETRIES)),
      "Pauses before further attempts of a background turn whose model's provider was away. An empty list switches them off.",
    ),
    [...BACKGROUND_RETRIES],
  ),
};

/** Options of background turns. */
export const backgroundTurnsConfig = v.strictObject({ ...backgroundTurnsSettings, ...backgroundRetriesSettings });

const replayMs = v.pipe(v.number(), v.integer(), v.minValue(1000));
const runtimeEntries = {
  ...turnsSettings,
  ...limitsSettings,
  /** How long a client may replay a request with identical IDs. The turn's output is kept for the same time. Default: 10 minutes. */
  autoReplayRetentionMs: v.optional(replayMs, AUTO_REPLAY_RETENTION_MS),
  /** How long a request's ID is remembered after its turn ended; default: 24 hours. Runs are kept for at least this time. */
  tombstoneRetentionMs: v.optional(replayMs, TOMBSTONE_RETENTION_MS),
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

/** Options of the runtime of turns alone, as callers write them. */
export type AgentRuntimeOptions = v.InferInput<typeof agentRuntimeConfig>;
/** The same after parsing. */
export type AgentRuntimeSettings = v.InferOutput<typeof agentRuntimeConfig>;

/** Options of background turns, as callers write them. */
export type BackgroundTurnsOptions = v.InferInput<typeof backgroundTurnsConfig>;
