import type { ports } from "@portico/core";
import type { Hints } from "../hints.ts";
import { DELEGATION_DEPTH } from "../limits.ts";
import type { Admission } from "./admission.ts";
import { requestDigest } from "./request-digest.ts";
import { type Delegate, DelegationRefused } from "../turns/built-in-tools.ts";
import { isBackground, type Turn } from "../turns/turn.ts";
import type { TurnEnd } from "../turns/turn-end.ts";

/** The end of the delegated turn, as the delegating turn gets it. */
export type DelegatedEnd = Pick<TurnEnd, "status" | "output" | "reason">;

export interface DelegationGiven {
  readonly agents: ports.Agents;
  readonly admission: Admission;
  readonly ids: ports.Ids;
  readonly hints: Hints;
  /** How a delegated turn ended, wherever it executed. Undefined while it has not. */
  readonly endOf: (turn: Pick<Turn, "userId" | "clientRequestId" | "runId">) => Promise<DelegatedEnd | undefined>;
  /** Stops a turn whose result is no longer needed. */
  readonly stop: (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => void;
}

/** Turns of other agents that turns begin (open points 10): of the same user, at most four deep, and never in a circle. */
export class Delegations {
  readonly #given: DelegationGiven;

  constructor(given: DelegationGiven) {
    this.#given = given;
  }

  readonly delegate: Delegate = async (from, { agentId, prompt, mode }, signal) => {
    const { agents, admission, ids, hints, endOf, stop } = this.#given;
    const chain = [...(from.delegation?.chain ?? []), from.agentId];
    if (chain.includes(agentId)) throw new DelegationRefused("This agent is already at work on this task: no circles");
    if (chain.length > DELEGATION_DEPTH) throw new DelegationRefused(`Tasks are delegated at most ${DELEGATION_DEPTH} deep`);
    if (!(await agents.find(agentId))) throw new DelegationRefused("There is no such agent");
    const clientRequestId = ids.id("delegated_");
    const digest = requestDigest({ agentId, prompt, mode });
    const delegation = {
      fromAgentId: from.agentId,
      parentRunId: from.runId,
      parentClientRequestId: from.clientRequestId,
      mode,
      chain,
      ...(isBackground(from) && { isBackground: true as const }),
    };
    const ended = mode === "wait" ? hints.listen<DelegatedEnd>(topicOf(clientRequestId)) : undefined;
    try {
      const { request } = await admission.admit(
        {
          userId: from.userId,
          agentId,
          clientRequestId,
          userMessageId: ids.id("msg_"),
          prompt,
          requestDigest: digest,
          contentDigest: digest,
          delegation,
          workflowDepth: from.workflowDepth,
        },
        {},
      );
      if (!ended) return JSON.stringify({ runId: request.runId, status: "started" });
      const end = await ended
        .until(() => endOf(request), signal)
        .catch((error: unknown) => {
          stop(request);
          throw error;
        });
      if (end.status !== "completed") throw new DelegationRefused(`The agent did not finish: ${end.reason ?? "error"}`);
      return end.output;
    } finally {
      ended?.close();
    }
  };

  /** A turn ended: notifies the waiting caller. Undefined: its result is unknown here. */
  notify({ clientRequestId, delegation }: Turn, end: DelegatedEnd | undefined): void {
    if (delegation?.mode === "wait") this.#given.hints.notify(topicOf(clientRequestId), end ?? unknownEnd);
  }
}

const unknownEnd: DelegatedEnd = { status: "failed", output: "" };

const topicOf = (clientRequestId: string): string => `conversations-runs/delegated/${clientRequestId}`;
