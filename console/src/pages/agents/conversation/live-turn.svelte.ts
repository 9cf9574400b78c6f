import type { AgentClient, FollowUp, QueryOptions, QueryStarted, SubmissionState } from "@portico/client";
import { describeFailure } from "../../../api/describe-failure.ts";
import { ShownTurn } from "./shown-turn.svelte.ts";
import type { SentFile } from "./turn.ts";

/** The result of a lookup of a submission (specification 3.4). */
export type Found = "committed" | "reserved" | "absent" | "unknown";

const FOUND: readonly string[] = ["committed", "reserved", "absent", "unknown"] satisfies Found[];

/** A turn that this page submitted, from its submission to its end. */
export class LiveTurn extends ShownTurn {
  readonly key: string;
  readonly at = new Date().toISOString();
  readonly prompt: string;
  readonly files: readonly SentFile[];
  submission = $state<SubmissionState>("sending");
  /** The result of the last lookup, if there was one. It stays visible. */
  found = $state<Found>();
  readonly #client: AgentClient;
  readonly #submitted: QueryOptions | FollowUp;
  readonly #begun: (started: QueryStarted) => void;

  /**
   * `submitted` has its IDs, and the timestamp of a follow-up, so that it can be submitted again unchanged. `prompt` is shown: a turn that is made
   * again submits no text.
   */
  constructor(given: {
    readonly client: AgentClient;
    readonly submitted: (QueryOptions | FollowUp) & { readonly clientRequestId: string };
    readonly prompt: string;
    readonly files: readonly SentFile[];
    readonly begun: (started: QueryStarted) => void;
  }) {
    super();
    this.key = given.submitted.clientRequestId;
    this.prompt = given.prompt;
    this.files = given.files;
    this.#client = given.client;
    this.#submitted = given.submitted;
    this.#begun = given.begun;
  }

  /** Submit it, or submit it again: with identical IDs and content, so that it runs only once. Resolves at its end. */
  async submit(): Promise<void> {
    this.state = "submitting";
    this.problem = undefined;
    this.ending = undefined;
    this.pieces = [];
    const query = (this.query = this.#client.submit(this.#submitted, { onState: (state) => this.#told(state) }));
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
      await this.showUntilEnd(query);
    } catch (error) {
      this.state = "refused";
      this.problem = describeFailure(error);
    }
    this.isStopping = false;
  }

  /** Ask the service for the state of the turn. Rejects like every call. */
  async lookUp(): Promise<void> {
    const { agentId } = this.#submitted;
    const { clientRequestId, userMessageId } = this.query!;
    const { results } = await this.#client.calls.lookup({ body: { agentId, requests: [{ clientRequestId, userMessageId }] } });
    this.found = results[0]?.status ?? "unknown";
  }

  #told(state: SubmissionState): void {
    this.submission = state;
    if (FOUND.includes(state)) this.found = state as Found;
    // Events may arrive before the response.
    if (state === "accepted" && this.state === "submitting") this.state = "waiting";
  }
}
