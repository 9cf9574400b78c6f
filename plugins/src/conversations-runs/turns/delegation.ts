import type { ports } from "@portico/core";
import { DELEGATION_DEPTH, MAX_TURNS } from "../limits.ts";
import type { Admission } from "../requests/admission.ts";
import { requestDigest } from "../requests/request-digest.ts";
import { type Delegate, DelegationRefused } from "./built-in-tools.ts";
import type { Turn } from "./turn.ts";
import type { TurnEnd } from "./turn-end.ts";

export interface DelegationGiven {
  readonly agents: ports.Agents;
  readonly admission: Admission;
  readonly ids: ports.Ids;
  /** Stops a turn whose result is no longer needed. */
  readonly stop: (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => void;
}

/** Turns of other agents that turns begin (open points 10): of the same user, at most four deep, and never in a circle. */
export class Delegations {
  readonly #given: DelegationGiven;
  readonly #waiting = new Map<string, (end: TurnEnd | undefined) => void>();

  constructor(given: DelegationGiven) {
    this.#given = given;
  }

  readonly delegate: Delegate = async (from, { agentId, prompt, mode }, signal) => {
    const { agents, admission, ids } = this.#given;
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
    };
    const ended = mode === "wait" ? this.#ended(clientRequestId, signal) : undefined;
    // If the caller gives up before the other turn starts, no rejection stays unhandled.
    ended?.catch(() => {});
    const { request } = await admission.admit(
      {
        userId: from.userId,
        agentId,
        clientRequestId,
        userMessageId: ids.id("msg_"),
        prompt,
        maxTurns: MAX_TURNS,
        requestDigest: digest,
        contentDigest: digest,
        delegation,
        workflowDepth: from.workflowDepth,
      },
      {},
    );
    if (!ended) return JSON.stringify({ runId: request.runId, status: "started" });
    const end = await ended.catch((error: unknown) => {
      this.#given.stop(request);
      throw error;
    });
    if (end?.status !== "completed") throw new DelegationRefused(`The agent did not finish: ${end?.reason ?? "error"}`);
    return end.output;
  };

  /** A turn ended: notifies the waiting caller. Undefined: its result is unknown. */
  tell(turn: Turn, end: TurnEnd | undefined): void {
    this.#waiting.get(turn.clientRequestId)?.(end);
  }

  async #ended(clientRequestId: string, signal: AbortSignal): Promise<TurnEnd | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<TurnEnd | undefined>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.set(clientRequestId, resolve);
    try {
      signal.throwIfAborted();
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#waiting.delete(clientRequestId);
    }
  }
}
