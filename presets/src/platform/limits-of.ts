import { type ConfigSetting, listConfigKeys, parseDuration } from "@portico/core";
import { AGENT_TEXT_BYTES } from "@portico/operator/agent-documents/contract";
import { NOTIFICATION_BYTES, TRIGGER_BYTES } from "@portico/plugins/agent-webhook/client";
import {
  ATTACHMENT_BYTES,
  ATTACHMENT_BYTES_PER_USER,
  ATTACHMENTS_PER_USER,
  MEDIA_BYTES,
} from "@portico/plugins/attachments-media/client";
import { MAX_TURNS, MAX_TURNS_MAXIMUM, QUERY_BYTES, QUERY_FILES } from "@portico/plugins/conversations-runs/client";
import type { Limit, Limits } from "@portico/operator/limits";
import { REQUEST_BYTES } from "@portico/plugins/model-proxy/client";
import { WRONG_CODES } from "./console-package.ts";
import { settingSource } from "./setting-source.ts";
import { type PlatformSettings, platformSchema } from "../settings/platform.ts";
import { pricesOf } from "./prices-of.ts";

type Words = Pick<Limit, "area" | "group" | "about" | "appliesTo" | "unit"> & Pick<Limit, "agentKey">;

const SECOND_MS = 1000;

/** The limits of a platform, and where they are set. `listing` has the sources of the settings. */
export function limitsOf(settings: PlatformSettings, listing: readonly ConfigSetting[] = []): Limits {
  const set = (setting: string, value: number | undefined, words: Words): Limit => ({
    ...{ id: setting, ...words, value, setting },
    env: environment().get(setting),
    source: settingSource(listing, setting),
  });
  const { agent, workflow, limits } = settings;
  const approvalMs = agent.toolPolicy.approvalTimeout === undefined ? undefined : parseDuration(agent.toolPolicy.approvalTimeout);
  return {
    currency: pricesOf(settings)?.currency,
    limits: [
      ...usageLimits(limits, set),
      fixed("turns.calls", MAX_TURNS, {
        ...{ area: "conversations-runs", group: "turns", appliesTo: "turn", unit: "calls", agentKey: "maxTurns" },
        about: `Model calls, where neither the query nor the agent gives a number. At most ${MAX_TURNS_MAXIMUM} can be given.`,
      }),
      set("agent.context.tokens", agent.context.tokens, {
        ...{ area: "conversations-runs", group: "turns", appliesTo: "turn", unit: "tokens", agentKey: "context.tokens" },
        about: "Tokens of one model request.",
      }),
      set("agent.context.resultCharacters", agent.context.resultCharacters, {
        ...{ area: "conversations-runs", group: "turns", appliesTo: "turn", unit: "characters" },
        about: "Characters of a tool's result that the model gets.",
      }),
      set("agent.webhooks.concurrencyPerAgent", agent.webhooks.concurrencyPerAgent, {
        ...{ area: "conversations-runs", group: "turns", appliesTo: "agent", unit: "turns" },
        about: "Background turns at the same time.",
      }),
      set("agent.webhooks.timeoutMs", agent.webhooks.timeoutMs, {
        ...{ area: "conversations-runs", group: "turns", appliesTo: "turn", unit: "milliseconds" },
        about: "Duration of a background turn.",
      }),
      set("agent.toolPolicy.approvalTimeout", approvalMs, {
        ...{ area: "conversations-runs", group: "turns", appliesTo: "turn", unit: "milliseconds" },
        ...{ agentKey: "toolPolicy.approvalTimeout", about: "How long a tool's call waits for a person." },
      }),
      ...UPLOADS,
      ...REQUESTS,
      set("workflow.files.maxBytes", workflow.files.maxBytes, {
        ...{ area: "workflow-service", group: "workflows", appliesTo: "file", unit: "bytes" },
        about: "Bytes of one file of a workflow's run.",
      }),
      set("workflow.files.maxRunBytes", workflow.files.maxRunBytes, {
        ...{ area: "workflow-service", group: "workflows", appliesTo: "run", unit: "bytes" },
        about: "Bytes of all files of a workflow's run.",
      }),
    ],
  };
}

const SUBJECTS = ["instance", "user", "agent"] as const;

function usageLimits(
  limits: PlatformSettings["limits"],
  set: (setting: string, value: number | undefined, words: Words) => Limit,
): readonly Limit[] {
  return SUBJECTS.flatMap((subject) => {
    const { tokensPerDay, moneyPerDay, turnsAtOnce, turnSeconds } = limits[subject] ?? {};
    const common = { area: "conversations-runs", group: "usage", appliesTo: subject } as const;
    const keyOf = (key: string) => (subject === "agent" ? { agentKey: `limits.${key}` } : {});
    const of = (key: string, value: number | undefined, unit: Limit["unit"], about: string) =>
      set(`limits.${subject}.${key}`, value, { ...common, unit, about, ...keyOf(key) });
    const turnMs = turnSeconds === undefined ? undefined : turnSeconds * SECOND_MS;
    return [
      of("tokensPerDay", tokensPerDay, "tokens", "Input and output tokens of model calls per day."),
      of("moneyPerDay", moneyPerDay, "money", "Costs of model calls per day."),
      of("turnsAtOnce", turnsAtOnce, "turns", "Turns at the same time."),
      of("turnSeconds", turnMs, "milliseconds", "Duration of a turn."),
    ];
  });
}

function fixed(id: string, value: number | undefined, words: Words): Limit {
  return { id, ...words, value, source: "fixed" };
}

const files = { area: "attachments-media", group: "uploads" } as const;
const UPLOADS: readonly Limit[] = [
  fixed("attachments.bytes", ATTACHMENT_BYTES, { ...files, appliesTo: "file", unit: "bytes", about: "Bytes of one attachment." }),
  fixed("attachments.count", ATTACHMENTS_PER_USER, { ...files, appliesTo: "user", unit: "files", about: "Attachments." }),
  fixed("attachments.total", ATTACHMENT_BYTES_PER_USER, {
    ...{ ...files, appliesTo: "user", unit: "bytes" },
    about: "Bytes of all attachments.",
  }),
  fixed("media.bytes", MEDIA_BYTES, { ...files, appliesTo: "file", unit: "bytes", about: "Bytes of one media file." }),
  fixed("queries.files", QUERY_FILES, {
    ...{ area: "conversations-runs", group: "uploads", appliesTo: "request", unit: "files" },
    about: "Files of one query.",
  }),
];

const REQUESTS: readonly Limit[] = [
  fixed("queries.bytes", QUERY_BYTES, {
    ...{ area: "conversations-runs", group: "requests", appliesTo: "request", unit: "bytes" },
    about: "Bytes of a query.",
  }),
  fixed("webhooks.bytes", TRIGGER_BYTES, {
    ...{ area: "agent-webhook", group: "requests", appliesTo: "request", unit: "bytes" },
    about: "Bytes of an event for an agent's webhook.",
  }),
  fixed("webhooks.notification-bytes", NOTIFICATION_BYTES, {
    ...{ area: "agent-webhook", group: "requests", appliesTo: "request", unit: "bytes" },
    about: "Bytes of a notification that a sender signed.",
  }),
  fixed("proxy.bytes", REQUEST_BYTES, {
    ...{ area: "model-proxy", group: "requests", appliesTo: "request", unit: "bytes" },
    about: "Bytes of a model request.",
  }),
  fixed("agents.bytes", AGENT_TEXT_BYTES, {
    ...{ area: "agent-documents", group: "requests", appliesTo: "file", unit: "bytes" },
    about: "Bytes of an agent.json that is written by a call.",
  }),
  fixed("sign-in.attempts", WRONG_CODES, {
    ...{ area: "sign-in", group: "requests", appliesTo: "process", unit: "attempts" },
    about: "Wrong sign-in codes per minute. Further ones get 429.",
  }),
];

let variables: ReadonlyMap<string, string | undefined> | undefined;
/** The environment variable of each setting. */
function environment(): ReadonlyMap<string, string | undefined> {
  return (variables ??= new Map(listConfigKeys(platformSchema).map(({ path, env }) => [path, env])));
}
