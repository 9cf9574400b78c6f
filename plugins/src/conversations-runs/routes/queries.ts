import { ports, type ServiceError } from "@portico/core";
import { agentErrors } from "../errors.ts";
import type { Admission, Submission } from "../queries/admission.ts";
import { requestDigest } from "../queries/request-digest.ts";
import { ownConversation } from "../conversations/conversations.ts";
import { findQuestion, type Question } from "../conversations/messages.ts";
import type { StoredPart, TurnFile } from "../turns/turn.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Accepts a query to an agent. Its turn executes in the background and sends events over the realtime channel. */
export function startQuery(services: ConversationServices): ConversationHandlers["start"] {
  return async ({ body, who, signal }) => {
    const { options, clientRequestId, userMessageId, prompt, mediaRefs } = body;
    const client = await services.runtime.channel.submitter(who, body.originSocketId);
    const { agentId, conversationId, replaces, regenerates, fileReferences, model, maxTurns, metadata } = options;
    const { isDuplicate } = await admitQuery(
      services,
      {
        ...client,
        ...{ agentId, clientRequestId, userMessageId, prompt, model, maxTurns, metadata },
        ...{ requestDigest: body.requestDigest, contentDigest: requestDigest(body) },
      },
      { conversationId, replaces, regenerates, references: { mediaRefs, fileReferences } },
      signal,
    );
    return { ok: true, clientRequestId, ...(isDuplicate && { duplicate: true }) };
  };
}

/** Where a query goes, and the files that come with it. */
interface Place {
  readonly conversationId?: string | undefined;
  readonly replaces?: string | undefined;
  readonly regenerates?: string | undefined;
  readonly references: FileReferences;
}

/** Admits a query that names its agent, with its files. Throws the errors of queries. */
export async function admitQuery(
  services: Pick<ConversationServices, "agents" | "runtime" | "log">,
  submission: Omit<Submission, "media" | "files">,
  place: Place,
  signal: AbortSignal,
): ReturnType<Admission["admit"]> {
  const { admission, files } = services.runtime;
  const { userId, agentId } = submission;
  const { conversationId } = place;
  const branchAt = await findBranchAt(services, userId, place, signal);
  const again = place.regenerates !== undefined && branchAt && !(branchAt instanceof Error) ? branchAt.message : undefined;
  const references = again ? referencesIn(again.parts) : place.references;
  const said = again && { prompt: textOf(again.parts), metadata: submission.metadata ?? again.metadata };
  // A new submission is refused below. An admitted submission stays admitted, even if its files were removed.
  const came = await queryFiles(files, userId, references).catch((error: unknown) => ({ refusal: error }));
  const whole = { ...submission, ...said, ...("refusal" in came ? {} : came) };
  return admission.admit(whole, { conversationId, branchAt }, async (turnId) => {
    if ("refusal" in came) throw came.refusal;
    if (!(await services.agents.find(agentId))) throw agentErrors.unknown_agent();
    return holdFiles(files, userId, turnId, references);
  });
}

/** The message in whose place a branch begins. In conversations of other users, nothing is searched. */
async function findBranchAt(
  { runtime, log }: Pick<ConversationServices, "runtime" | "log">,
  userId: string,
  { conversationId, replaces, regenerates }: Place,
  signal: AbortSignal,
): Promise<Question | ServiceError | undefined> {
  const wanted = replaces !== undefined ? { replaces } : regenerates !== undefined ? { regenerates } : undefined;
  if (!wanted || conversationId === undefined) return undefined;
  const own = await ownConversation(runtime.conversations, { userId, role: "member" }, conversationId);
  if (!own) return undefined;
  const found = await findQuestion(log, conversationId, wanted, signal);
  if (found === "missing") return agentErrors.message_not_found();
  return found === "wrong kind" ? agentErrors.wrong_message_kind() : found;
}

function textOf(parts: readonly StoredPart[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

function referencesIn(parts: readonly StoredPart[]): FileReferences {
  return {
    mediaRefs: parts.flatMap((part) => (part.type === "media_ref" ? [{ mediaId: part.reference }] : [])),
    fileReferences: parts.flatMap((part) => (part.type === "file_ref" ? [part.reference] : [])),
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

/** The files of a query. */
export interface FileReferences {
  readonly mediaRefs: readonly { readonly mediaId: string }[];
  readonly fileReferences: readonly string[];
}

/** The files that come with a query, if all of them are there and this user's to read. Throws the errors of queries. */
async function queryFiles(
  files: ports.UserFiles | undefined,
  userId: string,
  { mediaRefs, fileReferences }: FileReferences,
): Promise<{ readonly media?: readonly TurnFile[]; readonly files?: readonly TurnFile[] }> {
  if (mediaRefs.length === 0 && fileReferences.length === 0) return {};
  if (!files) throw agentErrors.attachments_unavailable();
  const media = await Promise.all(
    mediaRefs.map(
      async ({ mediaId }) =>
        toTurnFile(mediaId, await files.media(userId, mediaId).catch(toServiceError)) ?? raise(agentErrors.unknown_media),
    ),
  );
  const read = await Promise.all(
    fileReferences.map(
      async (reference) =>
        toTurnFile(reference, await files.attachment(userId, reference).catch(toServiceError)) ?? raise(agentErrors.unknown_file),
    ),
  );
  return { ...(media.length > 0 && { media }), ...(read.length > 0 && { files: read }) };
}

/**
 * The writes that keep the files of a query until its turn ends, for the commit of its admission. Throws the error of unknown files if one
 * was removed since it was looked up.
 */
async function holdFiles(
  files: ports.UserFiles | undefined,
  userId: string,
  turnId: string,
  { mediaRefs, fileReferences }: FileReferences,
): Promise<readonly ports.Write[]> {
  if (!files?.hold || (mediaRefs.length === 0 && fileReferences.length === 0)) return [];
  const used = { mediaIds: mediaRefs.map(({ mediaId }) => mediaId), fileReferences };
  return (await files.hold(userId, turnId, used).catch(toServiceError)) ?? raise(agentErrors.unknown_file);
}

function toTurnFile(reference: string, file: ports.UserFile | undefined): TurnFile | undefined {
  return file && { reference, name: file.name, mimeType: file.mimeType, size: file.size };
}

/** Files that cannot be looked up now: the client submits the same query again later. */
function toServiceError(error: unknown): never {
  if (!(error instanceof ports.UserFilesUnavailable)) throw error;
  throw agentErrors.registry_unavailable(undefined, undefined, error);
}

function raise(error: () => Error): never {
  throw error();
}
