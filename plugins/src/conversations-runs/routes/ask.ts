import type { EventOf } from "@portico/core";
import { preferredWait, waitApplied } from "@portico/core/kit";
import type * as v from "valibot";
import { turnEvents } from "../channel.ts";
import { countAfter, isEnd } from "../delivery/missing.ts";
import { readTurn } from "../delivery/read-turn.ts";
import { agentErrors } from "../errors.ts";
import { RECONNECT_MS, STAY_AWAY_MS } from "../limits.ts";
import { requestDigest } from "../queries/request-digest.ts";
import type { askResult } from "../query-contract.ts";
import { type ClientRequest, isOpenRequest, requestKey } from "../requests/client-requests.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { admitQuery } from "./queries.ts";

/**
 * Accepts a question to an agent, for programs without a realtime connection, and answers with what the agent said if the caller wanted to wait and
 * the turn has ended in time. The turn goes on when the caller leaves.
 */
export function askAgent(services: ConversationServices): ConversationHandlers["ask"] {
  const { runtime, clock, ids, log } = services;
  return async ({ params, body, who, ...call }) => {
    const { userId } = who;
    if (userId === undefined) throw agentErrors.user_required();
    const { conversationId, replaces, regenerates, mediaRefs, fileReferences, clientRequestId = ids.uuid(), ...said } = body;
    const digest = requestDigest({ ...body, agentId: params.id });
    const { request, isDuplicate } = await admitQuery(
      services,
      {
        ...said,
        ...{ userId, agentId: params.id, clientRequestId, userMessageId: clientRequestId },
        ...{ requestDigest: digest, contentDigest: digest },
      },
      { conversationId, replaces, regenerates, references: { mediaRefs, fileReferences } },
      call.signal,
    );
    const find = async () => (await runtime.requests.find(requestKey(userId, clientRequestId)))?.value;
    const ended = (until: AbortSignal) => lastEvent(readTurn({ log, clock }, { find, count: 0 }, until));
    // The question is accepted already, so no failure to read its answer may hide that.
    const end = await preferredWait(call, clock, ended).catch(() => undefined);
    if (end) waitApplied(call);
    return {
      ...{ clientRequestId, conversationId: request.conversationId, sessionId: request.sessionId, runId: request.runId },
      ...(isDuplicate && { duplicate: true as const }),
      ...(end ? endedAnswer(end) : openAnswer((await find().catch(() => undefined)) ?? request)),
    };
  };
}

/** Sends the events of a submission's turn: from its first, or after the `Last-Event-ID`. */
export function followQuery({ runtime: { requests }, log, clock }: ConversationServices): ConversationHandlers["events"] {
  return async ({ params: { clientRequestId }, who, head, signal }) => {
    const find = async (): Promise<ClientRequest | undefined> =>
      who.userId === undefined ? undefined : (await requests.find(requestKey(who.userId, clientRequestId)))?.value;
    if (!(await find())) throw agentErrors.request_not_found();
    const after = head.header("last-event-id");
    return (async function* () {
      try {
        yield { retryMs: RECONNECT_MS };
        const count = countOfId(after);
        if (after !== END) {
          for await (const event of readTurn({ log, clock }, { find, count }, signal)) {
            if (isTold(event)) yield { ...event, id: String(countAfter(event) ?? END) };
          }
        }
        // Clients that connect again by themselves do so also after a normal end.
        yield { retryMs: STAY_AWAY_MS };
      } catch (error) {
        // The reader has left, or the service stops.
        if (!signal.aborted) throw error;
      }
    })();
  };
}

/** The id of a turn's last event. Before it, an event's id is the number of events that its reader has. */
const END = "end";

function countOfId(id: string | undefined): number {
  return id !== undefined && /^\d{1,9}$/.test(id) ? Number(id) : 0;
}

function isTold(event: TurnEvent): event is TurnEvent & EventOf<typeof turnEvents> {
  return event.event in turnEvents;
}

async function lastEvent(events: AsyncIterable<TurnEvent>): Promise<TurnEvent | undefined> {
  for await (const event of events) if (isEnd(event)) return event;
  return undefined;
}

type AskResult = v.InferOutput<typeof askResult>;

function openAnswer(request: ClientRequest): Pick<AskResult, "status" | "location"> {
  if (!isOpenRequest(request)) return { status: "ended", location: `/api/runs/${request.runId}/receipt` };
  const location = `/api/query/client-requests/${encodeURIComponent(request.clientRequestId)}/events`;
  return { status: request.waits === undefined ? "started" : "waiting", location };
}

function endedAnswer(end: TurnEvent): Pick<AskResult, "status" | "output" | "reason" | "error" | "usage"> {
  if (end.event === "query:error") {
    const { error: message, code = "error" } = end.data;
    return { status: "failed", error: { code, message } };
  }
  if (end.event !== "query:complete") throw new TypeError(`${end.event} does not end a turn`);
  const { terminal, result } = end.data;
  const { output, usage } = (result ?? { output: terminal.partial }) as Pick<AskResult, "output" | "usage">;
  return { status: terminal.status, reason: terminal.reason, output, usage };
}
