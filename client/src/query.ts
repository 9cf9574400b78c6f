import type { turnMessage, turnTerminal } from "@portico/plugins/conversations-runs/client";
import type { InferOutput } from "valibot";
import type { ApprovalChange } from "./approvals.ts";

type TurnMessage = InferOutput<typeof turnMessage>;

/** One message of a turn; `seq` grows by one. A message of type `approval` tells that a call of a tool waits for a person, or is decided. */
export type QueryMessage =
  | (TurnMessage & { readonly type: Exclude<TurnMessage["type"], "approval"> })
  | (TurnMessage & { readonly type: "approval"; readonly content: ApprovalChange });

/** The identifiers of a turn that began to execute. */
export interface QueryStarted {
  readonly sessionId: string;
  readonly runId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly conversationId?: string | undefined;
}

/**
 * How a query ended. Only `completed` is a success. It is a full success only without `terminal.reason`, which says why the turn
 * ended other than by its agent's own decision (for example `max_tokens`). `unknown` means that the client cannot find out more:
 * look into the conversation before you submit anything again.
 */
export type QueryEnd =
  | {
      readonly status: "completed" | "interrupted";
      readonly terminal: InferOutput<typeof turnTerminal>;
      readonly result?: unknown;
    }
  | { readonly status: "failed"; readonly error: string; readonly code?: string | undefined }
  | { readonly status: "unknown"; readonly reason: string };

/** A submitted query: its messages, once and in order, and its end. */
export interface Query extends AsyncIterable<QueryMessage> {
  readonly clientRequestId: string;
  readonly userMessageId: string;
  /** Resolves when the service has certainly accepted the query. Rejects with CallFailed if the service refused it. */
  readonly accepted: Promise<void>;
  /** Resolves when the turn begins to execute, or with undefined if the query ended before. Rejects as `accepted` does. */
  readonly started: Promise<QueryStarted | undefined>;
  /** Resolves with the end, also for a failed query. Rejects as `accepted` does. */
  readonly ended: Promise<QueryEnd>;
  /** Stop the turn as soon as the service has accepted it, also before it begins. It ends as interrupted. */
  abort(): void;
}

/** The state of one query, and the object that its user holds. */
export class OpenQuery implements Query {
  readonly clientRequestId: string;
  readonly userMessageId: string;
  readonly #accepted = Promise.withResolvers<void>();
  readonly #started = Promise.withResolvers<QueryStarted | undefined>();
  readonly #ended = Promise.withResolvers<QueryEnd>();
  readonly #waiting: (() => void)[] = [];
  readonly #abort: () => void;
  #messages: QueryMessage[] = [];
  #seq = 0;
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  #begun: QueryStarted | undefined;
  #isAccepted = false;
  #isAborted = false;

  constructor(ids: Pick<Query, "clientRequestId" | "userMessageId">, abort: () => void) {
    this.clientRequestId = ids.clientRequestId;
    this.userMessageId = ids.userMessageId;
    this.#abort = abort;
    // A caller that uses one of these promises must not get unhandled rejections of the others.
    for (const { promise } of [this.#accepted, this.#started, this.#ended]) promise.catch(() => {});
  }

  get accepted(): Promise<void> {
    return this.#accepted.promise;
  }

  get started(): Promise<QueryStarted | undefined> {
    return this.#started.promise;
  }

  get ended(): Promise<QueryEnd> {
    return this.#ended.promise;
  }

  /** The `seq` of the last message received. A replay continues after it. */
  get seq(): number {
    return this.#seq;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get sessionId(): string | undefined {
    return this.#begun?.sessionId;
  }

  abort(): void {
    this.#isAborted = true;
    if (this.#isAccepted && !this.#isOver) this.#abort();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<QueryMessage> {
    for (;;) {
      const messages = this.#messages;
      this.#messages = [];
      yield* messages;
      if (this.#messages.length > 0) continue;
      if (this.#failure) throw this.#failure.error;
      if (this.#isOver) return;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  accept(): void {
    if (this.#isAccepted) return;
    this.#isAccepted = true;
    this.#accepted.resolve();
    // The service did not know of the query when its caller aborted it.
    if (this.#isAborted) this.abort();
  }

  begin(started: QueryStarted): void {
    this.accept();
    this.#begun ??= started;
    this.#started.resolve(started);
  }

  /** Takes a message. Returns false if a message before it is missing. Ignores a message that was taken before. */
  take(message: QueryMessage): boolean {
    if (this.#isOver || message.seq <= this.#seq) return true;
    if (message.seq > this.#seq + 1) return false;
    this.#seq = message.seq;
    this.#messages.push(message);
    this.#wake();
    return true;
  }

  end(end: QueryEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.accept();
    this.#started.resolve(undefined);
    this.#ended.resolve(end);
    this.#wake();
  }

  refuse(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = { error };
    for (const { reject } of [this.#accepted, this.#started, this.#ended]) reject(error);
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
