import type { AgentClient, FollowUp, Query, QueryOptions, QueryStarted, SubmissionState } from "@portico/client";
import { describeFailure } from "../../../api/describe-failure.ts";
import { describeEnding } from "../../runs/run.ts";
import { addMessage, type Piece, type SentFile, type Turn, type TurnState } from "./turn.ts";

/** The result of a lookup of a submission (specification 3.4). */
export type Found = "committed" | "reserved" | "absent" | "unknown";

const FOUND: readonly string[] = ["committed", "reserved", "absent", "unknown"] satisfies Found[];

/** Interval of updates of the shown text: models write faster than people read, and than a page can be laid out. */
const SHOW_MS = 40;

/** A turn that this page submitted, from its submission to its end. */
export class LiveTurn implements Turn {
  readonly key: string;
  readonly at = new Date().toISOString();
  readonly prompt: string;
  readonly files: readonly SentFile[];
  pieces = $state<Piece[]>([]);
  state = $state<TurnState>("submitting");
  submission = $state<SubmissionState>("sending");
  /** The result of the last lookup, if there was one. It stays visible. */
  found = $state<Found>();
  /** Why the turn was refused or failed, or why its result is unknown. */
  problem = $state<string>();
  /** Why the turn completed, if the agent did not decide it, as text. */
  ending = $state<string>();
  /** The user asked to stop it. */
  isStopping = $state(false);
  readonly #client: AgentClient;
  readonly #submitted: QueryOptions | FollowUp;
  readonly #begun: (started: QueryStarted) => void;
  #query: Query | undefined;

  /** `submitted` has its IDs, and the timestamp of a follow-up, so that it can be submitted again unchanged. */
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

  /** Submit it, or submit it again: with identical IDs and content, so that it runs only once. Resolves at its end. */
  async submit(): Promise<void> {
    this.state = "submitting";
    this.problem = undefined;
    this.ending = undefined;
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
      if (end.status === "completed") this.ending = describeEnding(end.terminal.reason);
      if (end.status === "failed") this.problem = end.error;
      if (end.status === "unknown") this.problem = end.reason;
    } catch (error) {
      this.state = "refused";
      this.problem = describeFailure(error);
    }
    this.isStopping = false;
  }

  /** Ends it as interrupted. A waiting turn ends when it would start. */
  stop(): void {
    this.isStopping = true;
    this.#query?.abort();
  }

  /** Ask the service for the state of the turn. Rejects like every call. */
  async lookUp(): Promise<void> {
    const { agentId } = this.#submitted;
    const { clientRequestId, userMessageId } = this.#query!;
    const { results } = await this.#client.calls.lookup({ body: { agentId, requests: [{ clientRequestId, userMessageId }] } });
    this.found = results[0]?.status ?? "unknown";
  }

  #told(state: SubmissionState): void {
    this.submission = state;
    if (FOUND.includes(state)) this.found = state as Found;
    // Events may arrive before the response.
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
