import type { AgentClient } from "@portico/client";
import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { ShownTurn } from "./shown-turn.svelte.ts";
import { type SentFile, toTurns } from "./turn.ts";

export type RunningTurn = NonNullable<CallResult<typeof conversationsRunsContract.runningTurn>["turn"]>;

/** A turn that another client program or another agent began, from its first event to its end. */
export class WatchedTurn extends ShownTurn {
  readonly key: string;
  readonly at: string;
  readonly prompt: string;
  readonly files: readonly SentFile[];
  readonly begunBy: RunningTurn["begunBy"];
  readonly #client: AgentClient;
  readonly #turn: Parameters<AgentClient["watch"]>[0];

  constructor(client: AgentClient, conversationId: string, turn: RunningTurn) {
    super();
    const [shown] = toTurns([turn.message]);
    this.key = turn.clientRequestId;
    this.at = turn.startedAt;
    this.prompt = shown?.prompt ?? "";
    this.files = shown?.files ?? [];
    this.begunBy = turn.begunBy;
    this.state = "running";
    this.#client = client;
    this.#turn = { conversationId, clientRequestId: turn.clientRequestId, userMessageId: turn.userMessageId };
  }

  /** Resolves at the end of the turn, or when the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    this.query = this.#client.watch(this.#turn, { signal });
    await this.showUntilEnd(this.query);
    this.isStopping = false;
  }
}
