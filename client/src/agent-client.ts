import { CallFailed, type CallResult, type Client, createClient } from "@portico/core/client";
import { attachmentsMediaContract } from "@portico/plugins/attachments-media/contract";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { io, type Socket } from "socket.io-client";
import { OpenQuery, type Query, type QueryMessage, type QueryStarted } from "./query.ts";
import { randomId } from "./random-id.ts";
import { afterFailure, afterLookup, pauseMs } from "./recovery.ts";
import type { SubmissionState } from "./submission-state.ts";
import {
  type FollowUp,
  type FollowUpInput,
  type QueryOptions,
  type StartInput,
  type Submission,
  toSubmission,
} from "./submission.ts";
import { toForm, type UploadOptions, type UploadSource } from "./upload.ts";

export interface AgentClientOptions {
  /**
   * Where the agent service stands, for example `http://127.0.0.1:49154`, or `https://desk.example/agent` where an application has mounted it
   * there. A page may leave out its own origin: `/agent`.
   */
  readonly baseURL: string;
  /** What goes into `X-Agent-Service-Token`. */
  readonly token: string;
  /**
   * Names this client program, 16-128 of letters, digits, `.`, `_`, `:`, `-`: whoever comes back with the same gets what it missed. A
   * browser keeps it in its session storage. Default: a new one.
   */
  readonly clientInstanceId?: string;
  /** In place of the platform's own. */
  readonly fetch?: (request: Request) => Response | Promise<Response>;
  /** What Socket.IO connects over; default: its own choice, polling first. */
  readonly transports?: readonly ("polling" | "websocket")[];
  /**
   * How long an accepted query may be silent after its run has come to rest before it counts as `unknown`, in milliseconds; default:
   * 10,000.
   */
  readonly silenceMs?: number;
  /** Told of the realtime connection whenever it changes: for whoever shows it to people. What it throws is nobody's. */
  readonly onConnection?: (state: ConnectionState) => void;
}

/** `interrupted`: it is being made again by itself. `refused`: the service does not take the token, and nothing is tried any more. */
export type ConnectionState = "connecting" | "connected" | "interrupted" | "refused" | "closed";

export interface SubmitOptions {
  /** Told of every step until the service has the query or refuses it: for whoever shows it to people. What it throws is nobody's. */
  readonly onState?: (state: SubmissionState) => void;
}

type UploadCall<T> = (input: {
  readonly body: BodyInit;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}) => Promise<T>;

const contract = { ...conversationsRunsContract, ...attachmentsMediaContract };

/** What the service answers an upload of a general file: `fileReference` goes into a query's `fileReferences`. */
export type AttachmentReceipt = CallResult<typeof contract.uploadAttachment>;
/** What the service answers an upload of media: it goes into a query's `mediaRefs`. */
export type MediaMetadata = CallResult<typeof contract.uploadMedia>;
/** `items` in the order of the first occurrences, each with its whole address, and `missing`: what is not there. */
export type MediaLinks = CallResult<typeof contract.mediaLinks>;

/** A client of one agent service. */
export interface AgentClient extends AsyncDisposable {
  readonly clientInstanceId: string;
  /** Every call of the service, typed by its contract: `client.calls.runs({ query: { limit: "10" } })`. */
  readonly calls: Client<typeof contract>;
  /**
   * Store a general file, up to 20 MiB. Nothing is retried: after a lost answer the file may be there, as one more. `fetch` does not tell
   * how far a `Blob` has been sent; whoever wants to show that sends a stream and counts what is taken from it.
   * @throws CallFailed where the service refuses it, the signal's reason, and what `fetch` or the source fails with.
   */
  uploadAttachment(source: UploadSource, options?: UploadOptions): Promise<AttachmentReceipt>;
  /** Store an image, sound or video, up to 2 GiB: in the same way. It needs its MIME type. */
  uploadMedia(source: UploadSource, options?: UploadOptions): Promise<MediaMetadata>;
  /**
   * Links to media, 1-100 of them, for whoever has them and for five minutes: they go into `<img src>` as they are. All of it fails with
   * CallFailed where one ID is malformed, or another user's.
   */
  mediaLinks(mediaIds: readonly string[], options?: Pick<UploadOptions, "signal">): Promise<MediaLinks>;
  /** Resolves when the realtime connection stands. Rejects where the service refuses the token. */
  connected(): Promise<void>;
  /**
   * Submit a query. Listens before it submits, and finds out by lookup what became of a submission whose answer was lost: it is never
   * submitted in a way that lets it run twice.
   * @throws TypeError where a query with this `clientRequestId` is still open in this client, and for a follow-up with a `clientRequestId`
   * of the application's own and without its `timestamp`.
   */
  submit(query: QueryOptions | FollowUp, options?: SubmitOptions): Query;
  /** End the connection. Queries that are still open end as `unknown`. */
  close(): void;
}

const SILENCE_MS = 10_000;
/** Where no lookup has told yet for how long a submission may be sent again. */
const AUTO_REPLAY_MS = 10 * 60_000;

/** Connect to an agent service. Nothing is awaited: queries wait for the connection by themselves. */
export function connectAgent(options: AgentClientOptions): AgentClient {
  return new Connection(options);
}

class Connection implements AgentClient {
  readonly clientInstanceId: string;
  readonly calls: Client<typeof contract>;
  readonly #baseURL: string;
  readonly #socket: Socket;
  readonly #silenceMs: number;
  readonly #onConnection: (state: ConnectionState) => void;
  readonly #open = new Map<string, { readonly query: OpenQuery; readonly submission: Submission; isAccepted: boolean }>();
  readonly #closing = new AbortController();
  #refusal: Error | undefined;
  #connection: ConnectionState = "connecting";
  #isCatchingUp = false;
  #isLooking = false;

  constructor({ baseURL, token, clientInstanceId, fetch, transports, silenceMs, onConnection }: AgentClientOptions) {
    this.clientInstanceId = clientInstanceId ?? randomId("client-");
    this.#silenceMs = silenceMs ?? SILENCE_MS;
    this.#onConnection = onConnection ?? (() => {});
    this.#baseURL = baseURL;
    this.calls = createClient(contract, {
      baseURL,
      headers: { "x-agent-service-token": token },
      ...(fetch && { fetch }),
    });
    const { origin, path } = socketPlace(baseURL);
    this.#socket = io(origin, {
      path,
      forceNew: true,
      ...(transports && { transports: [...transports] }),
      // Asked at every connection: where each query has come is what the service replays from.
      auth: (tell) => tell({ token, clientInstanceId: this.clientInstanceId, ...this.#received() }),
    });
    this.#listen();
  }

  async connected(): Promise<void> {
    if (this.#socket.connected) return;
    if (this.#refusal) throw this.#refusal;
    this.#closing.signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const settle = () => {
        if (!this.#socket.connected && !this.#refusal && !this.#closing.signal.aborted) return;
        this.#socket.off("connect", settle).off("connect_error", settle);
        this.#closing.signal.removeEventListener("abort", settle);
        if (this.#socket.connected) resolve();
        else reject(this.#refusal ?? this.#closing.signal.reason);
      };
      this.#socket.on("connect", settle).on("connect_error", settle);
      this.#closing.signal.addEventListener("abort", settle);
    });
  }

  submit(query: QueryOptions | FollowUp, { onState = () => {} }: SubmitOptions = {}): Query {
    const submission = toSubmission(query, Date.now());
    if (this.#open.has(submission.clientRequestId)) throw new TypeError("A query with this clientRequestId is still open");
    const opened = new OpenQuery(submission, ({ sessionId }) =>
      this.#socket.emit("query:abort", { sessionId, clientRequestId: submission.clientRequestId }),
    );
    const entry = { query: opened, submission, isAccepted: false };
    this.#open.set(submission.clientRequestId, entry);
    void this.#send(submission, opened, onState).then(
      () => {
        entry.isAccepted = true;
        opened.accept();
        onState("accepted");
        if (this.#refusal) this.#end(opened, { status: "unknown", reason: "The service refuses the connection" });
        else void this.#lookAfter();
      },
      (error: unknown) => this.#giveUp(opened, error),
    );
    return opened;
  }

  uploadAttachment(source: UploadSource, options: UploadOptions = {}): Promise<AttachmentReceipt> {
    return this.#upload(source, options, this.calls.uploadAttachment);
  }

  uploadMedia(source: UploadSource, options: UploadOptions = {}): Promise<MediaMetadata> {
    return this.#upload(source, options, this.calls.uploadMedia);
  }

  async mediaLinks(mediaIds: readonly string[], options: Pick<UploadOptions, "signal"> = {}): Promise<MediaLinks> {
    const body = { mediaIds: [...mediaIds] };
    const { items, missing } = await this.#untilAborted(options, (signal) => this.calls.mediaLinks({ body, signal }));
    const base = this.#baseURL.replace(/\/$/, "");
    return { items: items.map((item) => ({ ...item, url: base + item.url })), missing };
  }

  close(): void {
    this.#closing.abort(new DOMException("The client was closed", "AbortError"));
    this.#stands("closed");
    this.#socket.disconnect();
    for (const { query } of this.#open.values()) this.#end(query, { status: "unknown", reason: "The client was closed" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** Until the service has the submission for sure, or refuses it. */
  async #send(submission: Submission, query: OpenQuery, onState: (state: SubmissionState) => void): Promise<void> {
    const begun = Date.now();
    for (let attempt = 0; !query.isOver; attempt++) {
      if (!this.#socket.connected) onState("connecting");
      await this.connected();
      onState("sending");
      try {
        const { duplicate } = await this.#post(submission);
        // It was there before this program was: what it told by now is replayed at a connection that says so.
        if (duplicate && query.sessionId === undefined && !query.isOver) this.#socket.disconnect().connect();
        return;
      } catch (error) {
        const next = afterFailure(error);
        if (next === "refused") throw error;
        // Its events came although its answer did not.
        if (query.sessionId !== undefined) return;
        onState(next === "busy" ? "busy" : "unanswered");
        if (next === "unsure" && (await this.#findOut(submission, query, begun, onState)) === "accepted") return;
      }
      await this.#pause(attempt);
    }
  }

  #post(submission: Submission): Promise<{ readonly duplicate?: boolean | undefined }> {
    const { signal } = this.#closing;
    const body = submission.bodyFor(this.#socket.id ?? "");
    return submission.route === "start"
      ? this.calls.start({ body: body as StartInput, signal })
      : this.calls.followUp({ body: body as FollowUpInput, signal });
  }

  /** What became of a submission, asked until the service answers. Throws Unknown where it cannot tell, or may not be asked again. */
  async #findOut(
    submission: Submission,
    query: OpenQuery,
    begun: number,
    onState: (state: SubmissionState) => void,
  ): Promise<"accepted" | "replay"> {
    const { agentId, clientRequestId, userMessageId } = submission;
    for (let attempt = 0; ; attempt++) {
      if (query.isOver) return "accepted";
      try {
        const { results, autoReplayRetentionMs } = await this.calls.lookup({
          body: { agentId, requests: [{ clientRequestId, userMessageId }] },
          signal: this.#closing.signal,
        });
        const status = results[0]?.status ?? "unknown";
        onState(status);
        const next = afterLookup(status, { ageMs: Date.now() - begun, autoReplayRetentionMs });
        if (next === "unknown") throw new Unknown("The service cannot tell whether the query arrived");
        return next;
      } catch (error) {
        if (error instanceof Unknown) throw error;
        if (CallFailed.is(error) && error.status < 500) throw error;
        if (Date.now() - begun > AUTO_REPLAY_MS) throw new Unknown("The service could not be asked whether the query arrived");
      }
      await this.#pause(attempt);
    }
  }

  #upload<T>(source: UploadSource, options: UploadOptions, send: UploadCall<T>): Promise<T> {
    return this.#untilAborted(options, async (signal) => {
      const { body, headers, end } = toForm(source, options);
      try {
        return await send({ body, headers, signal });
      } finally {
        end();
      }
    });
  }

  /** Until the caller's signal aborts or the client is closed: whatever `fetch` makes of that, it rejects with the reason. */
  async #untilAborted<T>(options: Pick<UploadOptions, "signal">, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const signal = options.signal ? AbortSignal.any([options.signal, this.#closing.signal]) : this.#closing.signal;
    signal.throwIfAborted();
    try {
      return await work(signal);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  #giveUp(query: OpenQuery, error: unknown): void {
    if (error instanceof Unknown) return this.#end(query, { status: "unknown", reason: error.message });
    if (this.#closing.signal.aborted) return this.#end(query, { status: "unknown", reason: "The client was closed" });
    query.refuse(error);
    this.#forget(query);
  }

  #end(query: OpenQuery, end: Parameters<OpenQuery["end"]>[0]): void {
    query.end(end);
    this.#forget(query);
  }

  #forget(query: OpenQuery): void {
    // Its answer may come after its end, when the same submission is open again.
    if (this.#open.get(query.clientRequestId)?.query === query) this.#open.delete(query.clientRequestId);
  }

  #listen(): void {
    const socket = this.#socket;
    const on = (event: string, told: (query: OpenQuery, data: any) => void) =>
      socket.on(event, (data: { readonly clientRequestId?: string }) => {
        const entry = data?.clientRequestId === undefined ? undefined : this.#open.get(data.clientRequestId);
        if (entry) told(entry.query, data);
      });
    on("query:started", (query, data: QueryStarted) => query.begin(data));
    on("query:message", (query, { message }: { readonly message: QueryMessage }) => {
      if (!query.take(message)) this.#catchUp();
    });
    on("query:complete", (query, { terminal, result, seq }) => {
      if (seq > query.seq) return this.#catchUp();
      // Without a structured terminal nothing may be declared (specification 6.2).
      if (terminal?.status === "completed" || terminal?.status === "interrupted")
        this.#end(query, { status: terminal.status, terminal, result });
    });
    on("query:error", (query, { error, code, seq }) => {
      if (seq > query.seq) return this.#catchUp();
      this.#end(query, { status: "failed", error, code });
    });
    socket.on("connect", () => {
      this.#isCatchingUp = false;
      this.#stands("connected");
    });
    socket.on("connect_error", (error: Error & { readonly data?: { readonly code?: string } }) => {
      if (this.#closing.signal.aborted) return;
      this.#stands("interrupted");
      // Socket.IO comes back by itself after everything but a refusal.
      if (socket.active) return;
      if (error.data?.code === "internal_error") this.#connectSoon();
      else this.#refuse(error);
    });
    // The service ended it, for example because it is about to stop.
    socket.on("disconnect", (reason) => {
      this.#stands("interrupted");
      if (reason === "io server disconnect") this.#connectSoon();
    });
  }

  /** Messages are missing: a new connection says where each query has come, and the service replays from there. */
  #catchUp(): void {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    const again = () => this.#socket.disconnect().connect();
    this.#pause(1).then(again, () => {});
  }

  #connectSoon(): void {
    const connect = () => this.#socket.connect();
    // Closed meanwhile: nobody wants it any more.
    this.#pause(2).then(connect, () => {});
  }

  #stands(state: ConnectionState): void {
    if (state === this.#connection || this.#connection === "closed") return;
    this.#connection = state;
    this.#onConnection(state);
  }

  #refuse(error: Error): void {
    this.#refusal = error;
    this.#stands("refused");
    for (const { query, isAccepted } of this.#open.values()) {
      if (isAccepted) this.#end(query, { status: "unknown", reason: "The service refuses the connection" });
    }
  }

  /**
   * Looks after queries that were accepted, as long as there are any. What a turn tells is replayed by the service; where that is not possible,
   * because what it said is not kept any more or belongs to another client program, its run comes to rest without a word, and its end stays
   * unknown.
   */
  async #lookAfter(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const accepted = () => [...this.#open.values()].filter(({ isAccepted, query }) => isAccepted && !query.isOver);
    /** Queries whose run rested at the last look, and where they stood. */
    let rested = new Map<OpenQuery, number>();
    while (!this.#closing.signal.aborted && accepted().length > 0) {
      await this.#sleep(this.#silenceMs).catch(() => {});
      if (!this.#socket.connected) continue;
      const resting = new Map<OpenQuery, number>();
      for (const { query, submission } of accepted()) {
        if (!(await this.#isAtRest(query, submission)) || query.isOver) continue;
        // Twice without a word between: what was on its way has arrived by now.
        if (rested.get(query) === query.seq)
          this.#end(query, { status: "unknown", reason: "The run has come to rest, and its end was not told" });
        else resting.set(query, query.seq);
      }
      rested = resting;
    }
    this.#isLooking = false;
  }

  /** Whether a query's turn cannot be executing: its run rests, or the service does not know the query any more. */
  async #isAtRest(query: OpenQuery, { agentId, clientRequestId }: Submission): Promise<boolean> {
    const { signal } = this.#closing;
    try {
      const { results } = await this.calls.lookup({ body: { agentId, requests: [{ clientRequestId }] }, signal });
      const { status, sessionId = query.sessionId } = results[0] ?? { status: "unknown" };
      if (status === "reserved") return false;
      if (status !== "committed" || sessionId === undefined) return true;
      const id = sessionId.replace(/^ses_/, "run_");
      return (await this.calls.runtimeState({ params: { id }, signal })).status !== "running";
    } catch (error) {
      // A run that is gone will not speak again; a service that is away may.
      return CallFailed.is(error) && error.status === 404;
    }
  }

  #received(): { readonly received?: Readonly<Record<string, number>> } {
    const entries = [...this.#open.values()]
      .slice(-MOST_RECEIVED)
      .map(({ query }) => [query.clientRequestId, query.seq] as const);
    return entries.length === 0 ? {} : { received: Object.fromEntries(entries) };
  }

  #pause(attempt: number): Promise<void> {
    return this.#sleep(pauseMs(attempt));
  }

  #sleep(ms: number): Promise<void> {
    const { signal } = this.#closing;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const stop = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener("abort", stop);
        resolve();
      }, ms);
      signal.addEventListener("abort", stop, { once: true });
    });
  }
}

/** Socket.IO is told apart where the server is and where it listens there: a path behind the origin would be a namespace to it. */
function socketPlace(baseURL: string): { readonly origin: string; readonly path: string } {
  const { origin, pathname } = new URL(baseURL, globalThis.location?.href);
  return { origin, path: `${pathname.replace(/\/$/, "")}/socket.io/` };
}

/** So many the service takes in one hello. */
const MOST_RECEIVED = 100;

/** Nothing more can be found out. */
class Unknown extends Error {
  override readonly name = "Unknown";
}
