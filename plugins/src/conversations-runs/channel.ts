import { defineChannel, maxCharacters, record } from "@portico/core/contract";
import * as v from "valibot";
import { clientId } from "./client-id.ts";
import { LOOKUP_REQUESTS } from "./limits.ts";

const text = v.string();
const identifiers = {
  sessionId: text,
  runId: v.optional(text),
  agentId: v.optional(text),
  conversationId: v.optional(text),
  clientRequestId: v.optional(text),
};

/** One message of a turn (open points 7). `seq` grows by one per message of a request, so that a client sees a gap. */
export const turnMessage = v.object({
  id: text,
  /** `user` only for a message that steers the turn (an extension). Its content is `{ messageId, text }`. */
  role: v.picklist(["assistant", "tool", "user"]),
  type: v.picklist(["text", "thinking", "tool_call", "tool_result", "delivery", "summary", "approval", "steering"]),
  delta: v.optional(text),
  content: v.optional(v.unknown()),
  seq: v.number(),
});

/** How a turn ended (specification 6.2). */
export const turnTerminal = v.object({
  status: v.picklist(["completed", "interrupted"]),
  reason: v.optional(text),
  partial: v.optional(text),
  runId: v.optional(text),
});

/** The events of one turn. */
export const turnEvents = {
  "query:started": v.object(identifiers),
  "query:message": v.object({ ...identifiers, message: turnMessage }),
  /** `seq` of an end is the number of the last message: a client with a lower number has missed messages. */
  "query:complete": v.object({
    ...identifiers,
    seq: v.optional(v.number()),
    terminal: turnTerminal,
    result: v.optional(v.unknown()),
  }),
  "query:error": v.object({ ...identifiers, seq: v.optional(v.number()), error: text, code: v.optional(text) }),
};

/**
 * Why a watch ends without the end of its turn. `not_found`: the caller can see no such turn. `output_removed`: the turn has ended, and its
 * output is no longer kept. `too_many`: the connection has begun further watches. `failed`: the service cannot read the output.
 */
export const WATCH_ENDS = ["not_found", "output_removed", "too_many", "failed"] as const;

/** The realtime channel of queries (specification 4.6 and 6.2). */
export const queryChannel = defineChannel({
  surface: "agent",
  path: "/socket.io/",
  summary: "Progress of queries, and their abort",
  hello: v.strictObject({
    /** The same as in the header X-Agent-Service-Token. */
    token: v.pipe(text, v.nonEmpty()),
    clientInstanceId: v.pipe(text, v.regex(/^[A-Za-z0-9._:-]{16,128}$/)),
    /**
     * Where a client that comes back knows better than the service what arrived: per clientRequestId the `seq` of the last message that
     * it has; 0 for none.
     */
    received: v.optional(
      v.pipe(
        record(clientId, v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
        v.check((received) => Object.keys(received).length <= LOOKUP_REQUESTS, `at most ${LOOKUP_REQUESTS} requests`),
      ),
    ),
  }),
  receives: {
    /** Stops the turn that has all of these identifiers. `clientRequestId` names a turn also before it has begun. */
    "query:abort": v.pipe(
      v.strictObject({
        sessionId: v.optional(v.pipe(text, v.nonEmpty(), maxCharacters(128))),
        conversationId: v.optional(text),
        clientRequestId: v.optional(clientId),
        agentId: v.optional(text),
      }),
      v.check(
        ({ sessionId, clientRequestId }) => sessionId !== undefined || clientRequestId !== undefined,
        "a sessionId or a clientRequestId",
      ),
    ),
    /**
     * Send this connection the events of a turn that another client program submitted: an extension. `seq` is that of the last message that
     * the client has; without it, the events begin with the first.
     */
    "query:watch": v.strictObject({
      conversationId: v.pipe(text, v.nonEmpty()),
      clientRequestId: clientId,
      seq: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0))),
    }),
    /** Without `conversationId`, each watch of this `clientRequestId` ends: users may use the same one. */
    "query:unwatch": v.strictObject({
      clientRequestId: clientId,
      conversationId: v.optional(v.pipe(text, v.nonEmpty())),
    }),
  },
  sends: {
    ...turnEvents,
    "query:followUpAccepted": v.object({ sessionId: text, clientRequestId: text }),
    /** A watch has ended before the end of its turn was sent: an extension. No event says so after `query:unwatch`. */
    "query:watch-ended": v.object({ conversationId: text, clientRequestId: text, reason: v.picklist(WATCH_ENDS) }),
    "activity:run_status": v.object({
      runId: text,
      status: v.picklist(["running", "idle", "completed", "failed"]),
      sessionId: v.optional(text),
    }),
  },
});
