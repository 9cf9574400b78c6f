import type { AgentClient, FollowUp, Query, QueryOptions, QueryStarted, SubmissionState } from "@portico/client";
import { describeFailure } from "../../../api/describe-failure.ts";
import { addMessage, type Piece, type SentFile, type Turn, type TurnState } from "./turn.ts";

/** What a lookup says of a submission (specification 3.4). */
export type Found = "committed" | "reserved" | "absent" | "unknown";

const FOUND: readonly string[] = ["committed", "reserved", "absent", "unknown"] satisfies Found[];

/** So often is shown what was said meanwhile: a model is faster than eyes, and than a page that is laid out anew. */
const SHOW_MS = 40;

/** A turn that was submitted from here, from its submission to its end. */
export class LiveTurn implements Turn {
  readonly key: string;
  readonly at = new Date().toISOString();
  readonly prompt: string;
  readonly files: readonly SentFile[];
  pieces = $state<Piece[]>([]);
  state = $state<TurnState>("submitting");
  submission = $state<SubmissionState>("sending");
  /** What the last lookup said, where there was one: it stays, for people to see. */
  found = $state<Found>();
  /** Why it was refused, failed, or nothing more can be found out. */
  problem = $state<string>();
  /** Somebody wants it to stop. */
  isStopping = $state(false);
  readonly #client: AgentClient;
  readonly #submitted: QueryOptions | FollowUp;
  readonly #begun: (started: QueryStarted) => void;
  #query: Query | undefined;

  /** `submitted` has its IDs, and its timestamp where it is a follow-up, so that it can be submitted again as it is. */
  constructor(given: {
    readonly client: AgentClient;
    readonly submitted: (QueryOptions | FollowUp) & { readonly clientRequestId: string };
    readonly files: readonly SentFile[];
    readonly begun: (started: QueryStarted) => void;
  }) {
    this.key = given.submitted.clientRequestId;
    this.prompt = given.submitted.prompt;
    this.files = given.files;
    this.#client = given.client;
    this.#submitted = given.submitted;
    this.#begun = given.begun;
  }

  get isOver(): boolean {
    return !(["submitting", "waiting", "running"] satisfies TurnState[] as TurnState[]).includes(this.state);
  }

  /** Submit it, or submit it again: with identical IDs and content, so that it runs once however often that is done. Resolves at its end. */
  async submit(): Promise<void> {
    this.state = "submitting";
    this.problem = undefined;
    this.pieces = [];
    const query = (this.#query = this.#client.submit(this.#submitted, { onState: (state) => this.#told(state) }));
    void query.started.then(
      (started) => {
        if (!started) return;
        this.state = "running";
        this.#begun(started);
        if (this.isStopping) query.abort();
      },
      () => {},
    );
    try {
      await this.#show(query);
      const end = await query.ended;
      this.state = end.status;
      if (end.status === "failed") this.problem = end.error;
      if (end.status === "unknown") this.problem = end.reason;
    } catch (error) {
      this.state = "refused";
      this.problem = describeFailure(error);
    }
    this.isStopping = false;
  }

  /** Ends as interrupted; one that has not begun ends when its turn has come. */
  stop(): void {
    this.isStopping = true;
    this.#query?.abort();
  }

  /** Ask the service what became of it. Rejects as every call. */
  async lookUp(): Promise<void> {
    const { agentId } = this.#submitted;
    const { clientRequestId, userMessageId } = this.#query!;
    const { results } = await this.#client.calls.lookup({ body: { agentId, requests: [{ clientRequestId, userMessageId }] } });
    this.found = results[0]?.status ?? "unknown";
  }

  #told(state: SubmissionState): void {
    this.submission = state;
    if (FOUND.includes(state)) this.found = state as Found;
    // Its events may come before its answer.
    if (state === "accepted" && this.state === "submitting") this.state = "waiting";
  }

  async #show(query: Query): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const waiting: Parameters<typeof addMessage>[1][] = [];
    const show = () => {
      timer = undefined;
      for (const message of waiting.splice(0)) addMessage(this.pieces, message);
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
