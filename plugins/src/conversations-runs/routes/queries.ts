import { agentErrors } from "../errors.ts";
import { requestDigest } from "../queries/request-digest.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { holdFiles, queryFiles } from "./query-files.ts";

/** Accepts a query to an agent. Its turn executes in the background and sends events over the realtime channel. */
export function startQuery({ agents, runtime }: ConversationServices): ConversationHandlers["start"] {
  const { admission, channel, files } = runtime;
  return async ({ body, who }) => {
    const { options, clientRequestId, mediaRefs } = body;
    const client = await channel.submitter(who, body.originSocketId);
    const references = { mediaRefs, fileReferences: options.fileReferences };
    // A new submission is refused below. An admitted submission stays admitted, even if its files were removed.
    const came = await queryFiles(files, client.userId, references).catch((error: unknown) => ({ refusal: error }));
    const { isDuplicate } = await admission.admit(
      {
        ...client,
        agentId: options.agentId,
        clientRequestId,
        userMessageId: body.userMessageId,
        prompt: body.prompt,
        model: options.model,
        maxTurns: options.maxTurns,
        metadata: options.metadata,
        ...("refusal" in came ? {} : came),
        requestDigest: body.requestDigest,
        contentDigest: requestDigest(body),
      },
      { conversationId: options.conversationId },
      async (turnId) => {
        if ("refusal" in came) throw came.refusal;
        if (!(await agents.find(options.agentId))) throw agentErrors.unknown_agent();
        return holdFiles(files, client.userId, turnId, references);
      },
    );
    return { ok: true, clientRequestId, ...(isDuplicate && { duplicate: true }) };
  };
}

/** Accepts a further query in a session. */
export function followUp({ runtime: { admission, channel } }: ConversationServices): ConversationHandlers["followUp"] {
  return async ({ body, who }) => {
    const { sessionId, clientRequestId, message } = body;
    const client = await channel.submitter(who, body.originSocketId);
    const { isDuplicate } = await admission.admit(
      {
        ...client,
        // The session's own.
        agentId: "",
        clientRequestId,
        userMessageId: message.id,
        prompt: message.content,
        requestDigest: body.requestDigest,
        contentDigest: requestDigest(body),
      },
      { sessionId },
    );
    channel.followUpAccepted(client, body.originSocketId, sessionId, clientRequestId);
    return { ok: true, sessionId, clientRequestId, ...(isDuplicate && { duplicate: true }) };
  };
}

/** Returns the state of a query. */
export function lookUpQuery({ runtime: { requests } }: ConversationServices): ConversationHandlers["lookup"] {
  return ({ body, who }) => {
    if (who.userId === undefined) throw agentErrors.user_required();
    return requests.lookup(who.userId, body);
  };
}
