import { definePlugin, jsonList, ports } from "@portico/core";
import { turnRuntime } from "./agent-runtime.ts";
import { toAgentSummary } from "./agent-summary.ts";
import { queryChannel } from "./channel.ts";
import { conversationsRunsConfig } from "./config.ts";
import { conversationsRunsContract } from "./contract.ts";
import { readMessages } from "./conversations/messages.ts";
import { agentErrors } from "./errors.ts";
import { instanceGuard } from "./guards.ts";
import { MAX_TURNS, PAGE_LIMIT, PAGE_LIMIT_MAXIMUM, RUNS_LIMIT } from "./limits.ts";
import { readFilter, readPositive } from "./pagination.ts";
import { requestDigest } from "./requests/request-digest.ts";
import type { TurnFile } from "./turns/turn.ts";
import { allReceipts, readReceiptPage } from "./runs/receipts.ts";

const RUN_ID = /^[A-Za-z0-9_-]+$/;

/** Agents, conversations, durable turns, runs and receipts, and the realtime channel of queries (specification 4.6). */
export const conversationsRuns = definePlugin({
  name: "conversations-runs",
  summary: "Queries to agents, their progress, the runs that they make, and conversations.",
  config: conversationsRunsConfig,
  needs: { runtime: turnRuntime, log: ports.log, identity: ports.identity, agents: ports.agents, clock: ports.clock },
  contract: conversationsRunsContract,
  channels: { queries: queryChannel },
  guards: ({ identity }) => ({ instance: instanceGuard(identity) }),
  setup(given, settings, { plugins }) {
    const capabilities = capabilitiesOf(plugins, settings.capabilities);
    const { agents, log, clock, runtime } = given;
    const { serverInstanceId, requests, runs, conversations, desk, admission, clearing, channel, files } = runtime;

    /** Undefined for a run that this caller may not see: to a member, others' runs are missing (open points 10). */
    const visible = async (who: ports.Caller, runId: string) => {
      const run = RUN_ID.test(runId) && runId.length <= 128 ? (await runs.find(runId))?.value : undefined;
      return run && (who.role === "owner" || (who.userId !== undefined && run.user_id === who.userId)) ? run : undefined;
    };
    const own = async (who: ports.Caller, conversationId: string) => {
      const stored = conversationId.length <= 128 ? await conversations.find(conversationId).catch(notAnId) : undefined;
      return stored && (who.role === "owner" || stored.value.userId === who.userId) ? stored.value : undefined;
    };

    /** What comes with a query, if all of it is there and this user's to read. */
    const filesOf = async (userId: string, mediaRefs: readonly { mediaId: string }[], fileReferences: readonly string[]) => {
      if (mediaRefs.length === 0 && fileReferences.length === 0) return {};
      if (!files) throw agentErrors.attachments_unavailable();
      const media = await Promise.all(
        mediaRefs.map(
          async ({ mediaId }) => toTurnFile(mediaId, await files.media(userId, mediaId)) ?? raise(agentErrors.unknown_media),
        ),
      );
      const read = await Promise.all(
        fileReferences.map(
          async (reference) =>
            toTurnFile(reference, await files.attachment(userId, reference)) ?? raise(agentErrors.unknown_file),
        ),
      );
      return { ...(media.length > 0 && { media }), ...(read.length > 0 && { files: read }) };
    };

    return {
      handshake: ({ who }) => ({
        protocolVersion: 1 as const,
        serverInstanceId,
        version: settings.version,
        identity: { ...(who.userId !== undefined && { userId: who.userId }), role: who.role },
        capabilities,
      }),

      agents: async () => ({ agents: (await agents.list()).map((agent) => toAgentSummary(agent, desk.isBusy(agent.id))) }),

      runs({ query, who }) {
        const limit = readPositive("limit", query.limit, RUNS_LIMIT);
        const agentId = readFilter("agent_id", query.agent_id);
        const delegatedBy = readFilter("delegated_by", query.delegated_by);
        const parentRunId = readFilter("parent_run_id", query.parent_run_id);
        if (who.role !== "owner" && who.userId === undefined) return { runs: [] };
        const filters = {
          ...(who.role !== "owner" && { user_id: who.userId }),
          ...(agentId !== undefined && { agent_id: agentId }),
          ...(delegatedBy !== undefined && { delegated_by: delegatedBy }),
          ...(parentRunId !== undefined && { parent_run_id: parentRunId }),
        };
        return jsonList("runs", runs.newest(filters, limit));
      },

      async run({ params, who }) {
        const run = await visible(who, params.id);
        if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
        return run;
      },

      async changeRun({ params, body, who }) {
        const at = new Date(clock.now()).toISOString();
        const run =
          (await visible(who, params.id)) &&
          (await runs.change(params.id, ({ archived_at, ...rest }) => {
            const isArchived = body.archived ?? archived_at !== undefined;
            return {
              ...rest,
              ...(isArchived && { archived_at: archived_at ?? at }),
              ...(body.title !== undefined && { title: body.title }),
              updatedAt: at,
            };
          }));
        if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
        return run;
      },

      async runtimeState({ params, who }) {
        if (!RUN_ID.test(params.id)) throw agentErrors.invalid_run_id();
        const run = await visible(who, params.id);
        if (!run) throw agentErrors.run_state_not_found(`Run runtime state not found: ${params.id}`);
        return { run_id: run.run_id, agent_id: run.agent_id, status: run.status };
      },

      async receipts({ params, query, who, signal }) {
        if (!RUN_ID.test(params.id)) throw agentErrors.invalid_run_id();
        if (who.userId === undefined) throw agentErrors.user_unresolved();
        const page = query.offset === undefined && query.limit === undefined ? undefined : readReceiptPage(query);
        // 4.6: receipts are the user's own, also from an owner's eyes.
        const run = await visible(who, params.id);
        if (!run || run.user_id !== who.userId) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
        return page ? page(log, run.run_id, signal) : allReceipts(log, run.run_id, signal);
      },

      async start({ body, who }) {
        const { options, clientRequestId, mediaRefs } = body;
        const client = channel.submitter(who, body.originSocketId);
        // Refused below, where it is new: what was admitted once stays so, whatever has become of its files.
        const came = await filesOf(client.userId, mediaRefs, options.fileReferences).catch((error: unknown) => ({
          refusal: error,
        }));
        const { isDuplicate } = await admission.admit(
          {
            ...client,
            agentId: options.agentId,
            clientRequestId,
            userMessageId: body.userMessageId,
            prompt: body.prompt,
            model: options.model,
            maxTurns: options.maxTurns ?? MAX_TURNS,
            metadata: options.metadata,
            ...("refusal" in came ? {} : came),
            requestDigest: body.requestDigest,
            contentDigest: requestDigest(body),
          },
          { conversationId: options.conversationId },
          async () => {
            if ("refusal" in came) throw came.refusal;
            if (!(await agents.find(options.agentId))) throw agentErrors.unknown_agent();
          },
        );
        return { ok: true as const, clientRequestId, ...(isDuplicate && { duplicate: true }) };
      },

      async followUp({ body, who }) {
        const { sessionId, clientRequestId, message } = body;
        const client = channel.submitter(who, body.originSocketId);
        const { isDuplicate } = await admission.admit(
          {
            ...client,
            // The session's own.
            agentId: "",
            clientRequestId,
            userMessageId: message.id,
            prompt: message.content,
            maxTurns: MAX_TURNS,
            requestDigest: body.requestDigest,
            contentDigest: requestDigest(body),
          },
          { sessionId },
        );
        channel.followUpAccepted(body.originSocketId, sessionId, clientRequestId);
        return { ok: true as const, sessionId, clientRequestId, ...(isDuplicate && { duplicate: true }) };
      },

      lookup({ body, who }) {
        if (who.userId === undefined) throw agentErrors.user_required();
        return requests.lookup(who.userId, body);
      },

      async conversations({ query, who }) {
        const limit = Math.min(readPositive("limit", query.limit, PAGE_LIMIT), PAGE_LIMIT_MAXIMUM);
        const after = readFilter("after", query.after);
        if (who.role !== "owner" && who.userId === undefined) return { conversations: [] };
        try {
          const { items, next } = await conversations.page(who.role === "owner" ? undefined : who.userId, limit, after);
          return {
            conversations: items.map(({ value: { depth: _depth, clearing: _clearing, ...conversation } }) => conversation),
            ...(next !== undefined && { next }),
          };
        } catch (error) {
          if (error instanceof ports.RecordCursorInvalid)
            throw agentErrors.invalid_pagination("Invalid pagination: after must be the next of the page before");
          throw error;
        }
      },

      async messages({ params, query, who, signal }) {
        const limit = Math.min(readPositive("limit", query.limit, PAGE_LIMIT), PAGE_LIMIT_MAXIMUM);
        const before = query.before === undefined ? undefined : readPositive("before", query.before, 1);
        if (!(await own(who, params.id))) throw agentErrors.conversation_not_found();
        return readMessages(log, params.id, { before, limit, signal });
      },

      async clear({ params, who, signal }) {
        const mayClear = (userId: string) => who.role === "owner" || who.userId === userId;
        const isCleared = (await own(who, params.id)) && (await clearing.clear(params.id, mayClear, signal));
        if (!isCleared) throw agentErrors.conversation_not_found();
        return { conversationId: params.id, cleared: true as const };
      },
    };
  },
});

/** An id that no store takes is nobody's. */
function notAnId(error: unknown): undefined {
  if (!(error instanceof TypeError)) throw error;
}

function toTurnFile(reference: string, file: ports.UserFile | undefined): TurnFile | undefined {
  return file && { reference, name: file.name, mimeType: file.mimeType, size: file.size };
}

/** What a setting says wins: an area may be there, and not for everybody. */
function capabilitiesOf(plugins: readonly string[], said: Partial<Record<keyof typeof AREAS, boolean | undefined>>) {
  const has = (capability: keyof typeof AREAS) => said[capability] ?? plugins.includes(AREAS[capability]);
  return {
    webhookManagement: has("webhookManagement"),
    media: has("media"),
    attachments: has("attachments"),
    realtime: true,
    safeTokens: has("safeTokens"),
  };
}

/** The plugins whose areas the handshake tells of (open points 4). */
const AREAS = {
  webhookManagement: "agent-webhook",
  media: "attachments-media",
  attachments: "attachments-media",
  safeTokens: "safe-tokens",
} as const;

function raise(error: () => Error): never {
  throw error();
}
