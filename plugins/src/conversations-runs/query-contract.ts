import { maxCharacters, objectOnly, record } from "@portico/core/contract";
import * as v from "valibot";
import { clientId } from "./client-id.ts";
import {
  LOOKUP_REQUESTS,
  MAX_TURNS_MAXIMUM,
  METADATA_ENTRIES,
  METADATA_LENGTH,
  PROMPT_ARGUMENT_CHARACTERS,
  PROMPT_ARGUMENTS,
  PROMPT_ID_CHARACTERS,
  QUERY_FILES,
  STEERING_CHARACTERS,
} from "./limits.ts";

const text = v.pipe(
  v.string(),
  v.check((value) => value.isWellFormed(), "well-formed text"),
);
const digest = v.pipe(v.string(), v.startsWith("qrd1:"), maxCharacters(256));
const id = v.pipe(v.string(), v.nonEmpty(), maxCharacters(128));

/** What is said to the agent. */
const said = {
  prompt: v.optional(text, ""),
  /** Media metadata as an upload returns it (2.8). Only the id counts. */
  mediaRefs: v.optional(v.pipe(v.array(v.looseObject({ mediaId: v.string() })), v.maxLength(QUERY_FILES)), []),
};

const options = {
  conversationId: v.optional(id),
  /** A user's message of the conversation: this query takes its place, in a new branch (an extension). */
  replaces: v.optional(clientId),
  /** An answer of the conversation: its turn is made again from the same user's message, in a new branch (an extension). */
  regenerates: v.optional(clientId),
  fileReferences: v.optional(v.pipe(v.array(v.string()), v.maxLength(QUERY_FILES)), []),
  model: v.optional(v.pipe(v.string(), v.nonEmpty(), maxCharacters(256))),
  maxTurns: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_TURNS_MAXIMUM))),
  metadata: v.optional(
    v.pipe(
      record(v.pipe(text, maxCharacters(256)), v.pipe(text, maxCharacters(METADATA_LENGTH))),
      v.check((metadata) => Object.keys(metadata).length <= METADATA_ENTRIES, `at most ${METADATA_ENTRIES} entries`),
    ),
  ),
};

/** What is said to the agent, and where. */
interface Asked {
  readonly prompt: string;
  readonly mediaRefs: readonly unknown[];
  readonly fileReferences: readonly unknown[];
  readonly conversationId?: string | undefined;
  readonly replaces?: string | undefined;
  readonly regenerates?: string | undefined;
}

/** A turn that is made again has the words and files of its first time. */
const saysSomething = ({ prompt, mediaRefs, fileReferences, regenerates }: Asked) =>
  regenerates === undefined
    ? prompt !== "" || mediaRefs.length > 0
    : prompt === "" && mediaRefs.length === 0 && fileReferences.length === 0;
const SAYS_SOMETHING = "a nonempty prompt, or media; with `regenerates`, neither of them and no files";
const hasPlace = ({ conversationId, replaces, regenerates }: Asked) =>
  (replaces === undefined && regenerates === undefined) ||
  (conversationId !== undefined && (replaces === undefined || regenerates === undefined));
const HAS_PLACE = "`replaces` or `regenerates`, and a conversation";

/** POST /api/query/start (specification 4.6, open points 7). */
export const startBody = v.pipe(
  v.strictObject({
    ...said,
    options: v.strictObject({ agentId: id, ...options }),
    clientRequestId: clientId,
    userMessageId: clientId,
    requestDigest: digest,
    originSocketId: id,
  }),
  v.forward(
    v.check((body) => saysSomething({ ...body, ...body.options }), SAYS_SOMETHING),
    ["prompt"],
  ),
  v.forward(
    v.check((body) => hasPlace({ ...body, ...body.options }), HAS_PLACE),
    ["options", "conversationId"],
  ),
);

/** POST /api/agents/:id/ask (an extension). */
export const askBody = v.pipe(
  objectOnly(
    v.strictObject({
      ...said,
      ...options,
      /** Names the question: the same one again starts no second turn. Default: a new one. */
      clientRequestId: v.optional(clientId),
    }),
  ),
  v.forward(
    v.check((body) => saysSomething(body), SAYS_SOMETHING),
    ["prompt"],
  ),
  v.forward(
    v.check((body) => hasPlace(body), HAS_PLACE),
    ["conversationId"],
  ),
);

/**
 * The answer to a question (an extension). `started`, or `waiting` for a person: its turn has not ended, and `location` has its events. `ended`: its
 * turn has ended some time ago, and `location` has its receipt.
 */
export const askResult = v.object({
  status: v.picklist(["started", "waiting", "completed", "interrupted", "failed", "ended"]),
  clientRequestId: v.string(),
  conversationId: v.string(),
  sessionId: v.string(),
  runId: v.string(),
  /** The question was asked before. */
  duplicate: v.optional(v.literal(true)),
  location: v.optional(v.string()),
  /** What the agent said, or had said until it was interrupted. */
  output: v.optional(v.string()),
  reason: v.optional(v.string()),
  error: v.optional(v.object({ code: v.string(), message: v.string() })),
  usage: v.optional(record(v.string(), v.unknown())),
});

/** POST /api/query/follow-up (specification 4.6). */
export const followUpBody = v.strictObject({
  sessionId: id,
  originSocketId: id,
  message: v.strictObject({
    id: clientId,
    role: v.literal("user"),
    content: v.pipe(text, v.nonEmpty()),
    timestamp: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  }),
  clientRequestId: clientId,
  requestDigest: digest,
});

/** POST /api/agents/:id/prompts/fill (an extension). */
export const fillPromptBody = v.strictObject({
  prompt: v.pipe(v.string(), v.nonEmpty(), maxCharacters(PROMPT_ID_CHARACTERS)),
  arguments: v.optional(
    v.pipe(
      record(v.pipe(v.string(), maxCharacters(256)), v.pipe(text, maxCharacters(PROMPT_ARGUMENT_CHARACTERS))),
      v.check((given) => Object.keys(given).length <= PROMPT_ARGUMENTS, `at most ${PROMPT_ARGUMENTS} arguments`),
    ),
    {},
  ),
});

/** POST /api/query/client-requests/:clientRequestId/steer (an extension). */
export const steerBody = objectOnly(
  v.strictObject({
    /** Names the message: the same one again is not told twice. */
    messageId: clientId,
    text: v.pipe(text, v.nonEmpty(), maxCharacters(STEERING_CHARACTERS)),
  }),
);

/**
 * `pending`: the agent is told before its next model call. `taken`: it was told. `not_taken`: the turn ended before, and the message is not in its
 * conversation.
 */
export const steerResult = v.object({
  ok: v.literal(true),
  clientRequestId: v.string(),
  messageId: v.string(),
  status: v.picklist(["pending", "taken", "not_taken"]),
  duplicate: v.optional(v.literal(true)),
});

/** POST /api/query/client-requests/lookup (specification 4.6). */
export const lookupBody = v.strictObject({
  agentId: id,
  conversationId: v.optional(id),
  requests: v.pipe(
    v.array(v.strictObject({ clientRequestId: clientId, userMessageId: v.optional(clientId) })),
    v.minLength(1),
    v.maxLength(LOOKUP_REQUESTS),
  ),
});

/** The lookup's answer (specification 2.13); the results stand in the order of the requests. */
export const lookupResult = v.object({
  protocolVersion: v.literal(1),
  serverInstanceId: v.string(),
  observedAt: v.string(),
  autoReplayRetentionMs: v.number(),
  tombstoneRetentionMs: v.number(),
  results: v.array(
    v.object({
      clientRequestId: v.string(),
      status: v.picklist(["committed", "reserved", "absent", "unknown"]),
      committedAt: v.optional(v.string()),
      sessionId: v.optional(v.string()),
      committedServerInstance: v.optional(v.picklist(["current", "previous", "unknown"])),
      executionWitness: v.optional(v.picklist(["user-message", "none", "unknown"])),
    }),
  ),
});

export type StartBody = v.InferOutput<typeof startBody>;
export type FollowUpBody = v.InferOutput<typeof followUpBody>;
export type LookupBody = v.InferOutput<typeof lookupBody>;
export type LookupResult = v.InferOutput<typeof lookupResult>;
