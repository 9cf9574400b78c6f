import type { Query } from "@portico/client";
import { describeEnding } from "../../runs/run.ts";
import { addMessage, type Piece, type SentFile, type Turn, type TurnState } from "./turn.ts";

/** Interval of updates of the shown text: models write faster than people read, and than a page can be laid out. */
const SHOW_MS = 40;

/** A message of the user to a turn that goes on. */
export interface SteeringMessage {
  readonly messageId: string;
  readonly text: string;
  /** Another page said it, or this one before it was loaded again. */
  readonly isOfAnother?: true;
}

/** A turn whose events arrive while it is shown. */
export abstract class ShownTurn implements Turn {
  abstract readonly key: string;
  abstract readonly at: string;
  abstract readonly prompt: string;
  abstract readonly files: readonly SentFile[];
  pieces = $state<Piece[]>([]);
  state = $state<TurnState>("submitting");
  /** Why the turn was refused or failed, or why its result is unknown. */
  problem = $state<string>();
  /** Why the turn completed, if the agent did not decide it, as text. */
  ending = $state<string>();
  /** The user asked to stop it. */
  isStopping = $state(false);
  /** What the user said to it, and the agent was not told yet. */
  pending = $state<readonly SteeringMessage[]>([]);
  protected query: Query | undefined;

  get isOver(): boolean {
    return !(["submitting", "waiting", "running"] satisfies TurnState[] as TurnState[]).includes(this.state);
  }

  /** Ends it as interrupted. A waiting turn ends when it would start. */
  stop(): void {
    this.isStopping = true;
    this.query?.abort();
  }

  /** A message is not pending any more. Returns whether it was. */
  drop(messageId: string): boolean {
    const before = this.pending.length;
    this.pending = this.pending.filter((message) => message.messageId !== messageId);
    return this.pending.length < before;
  }

  /** Shows the messages of a query and its end. Rejects if the service refused the query. */
  protected async showUntilEnd(query: Query): Promise<void> {
    await this.#show(query);
    const end = await query.ended;
    this.state = end.status;
    if (end.status === "completed") this.ending = describeEnding(end.terminal.reason);
    if (end.status === "failed") this.problem = end.error;
    if (end.status === "unknown") this.problem = end.reason;
  }

  async #show(query: Query): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const waiting: Parameters<typeof addMessage>[1][] = [];
    const show = () => {
      timer = undefined;
      for (const message of waiting.splice(0)) {
        addMessage(this.pieces, message);
        if (message.type === "steering") this.drop((message.content as SteeringMessage).messageId);
      }
    };
    try {
      for await (const message of query) {
        waiting.push(message);
        timer ??= setTimeout(show, SHOW_MS);
      }
    } finally {
      clearTimeout(timer);
      show();
    }
  }
}
