// One file: the calls, the connection and the order of the events of a turn share one state.
import { CallFailed, type CallResult, type Client, createClient } from "@portico/core/client";
import { attachmentsMediaContract } from "@portico/plugins/attachments-media/contract";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { io } from "socket.io-client";
import { type Approval, type ApprovalDecision, type DecidedApproval, eachApproval, type ToolConsent } from "./approvals.ts";
import { countRuns, findRuns, type Run, type RunCounts, type RunSearch } from "./find-runs.ts";
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
import { toForm, type UploadOptions, type UploadSource } from "./to-form.ts";
import { WebSocketWire } from "./web-socket-wire.ts";
import type { Wire } from "./wire.ts";

/** Options of an agent client. */
export interface AgentClientOptions {
  /**
   * Base URL of the agent service, for example `http://127.0.0.1:49154`, or `https://desk.example/agent` where an application has
   * mounted the service. A page may leave out its own origin: `/agent`.
   */
  readonly baseURL: string;
  /** The token, sent as `X-Agent-Service-Token`. */
  readonly token: string;
  /**
   * Identifies this client program: 16-128 letters, digits, `.`, `_`, `:`, `-`. A client that reconnects with the same ID gets
   * the messages that it missed. In a browser, keep the ID in session storage. Default: a new ID.
   */
  readonly clientInstanceId?: string;
  /** Replaces the platform's `fetch`. */
  readonly fetch?: (request: Request) => Response | Promise<Response>;
  /**
   * Transport of the realtime channel: `socket-io` (the default), or `websocket` for a service with `webSocketRealtime`.
   * `websocket` uses the platform's WebSocket (browsers, Node.js 22 and later).
   */
  readonly realtime?: "socket-io" | "websocket" | undefined;
  /** Transports of Socket.IO. Default: the choice of Socket.IO, which begins with polling. */
  readonly transports?: readonly ("polling" | "websocket")[];
  /**
   * Milliseconds between looks at the run of an accepted query of which nothing is heard. If the run is at rest at two looks, the client
   * connects again, and the service replays what was missed. If it is at rest at two more, the query ends as `unknown`. Default: 10,000.
   */
  readonly silenceMs?: number;
  /**
   * If a lookup says `unknown`, the client asks again for this many milliseconds before the query ends as `unknown`: the service
   * says so, too, while its store is unavailable. Default: 60,000.
   */
  readonly unknownMs?: number;
  /** Called at every change of the realtime connection, for example to display it. Errors that it throws are ignored. */
  readonly onConnection?: (state: ConnectionState) => void;
}

/**
 * `interrupted`: the client reconnects by itself. `refused`: the service does not accept the token, and the client makes no
 * further attempt.
 */
export type ConnectionState = "connecting" | "connected" | "interrupted" | "refused" | "closed";

/** Options of a query. */
export interface SubmitOptions {
  /**
   * Called at every step until the service accepts or refuses the query, for example to display it. Errors that it throws are
   * ignored.
   */
  readonly onState?: (state: SubmissionState) => void;
}

/** What became of a message to a turn. `pending`: the agent is told before its next model call. `not_taken`: the turn ended before. */
export interface Steered {
  readonly messageId: string;
  readonly status: "pending" | "taken" | "not_taken";
}

/** A turn that another client program submitted. */
export interface WatchedTurn {
  readonly conversationId: string;
  readonly clientRequestId: string;
  readonly userMessageId: string;
}

type UploadCall<T> = (input: {
  readonly body: BodyInit;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}) => Promise<T>;

const contract = { ...conversationsRunsContract, ...attachmentsMediaContract };

/** The service's answer to an upload of a general file. `fileReference` goes into a query's `fileReferences`. */
export type AttachmentReceipt = CallResult<typeof contract.uploadAttachment>;
/** The service's answer to an upload of media. It goes into a query's `mediaRefs`. */
export type MediaMetadata = CallResult<typeof contract.uploadMedia>;
/** `items` is in the order of the first occurrences, each with its absolute URL. `missing` lists the media that do not exist. */
export type MediaLinks = CallResult<typeof contract.mediaLinks>;

/** A client of one agent service. */
export interface AgentClient extends AsyncDisposable {
  readonly clientInstanceId: string;
  /** Every call of the service, typed by its contract: `client.calls.runs({ query: { limit: "10" } })`. */
  readonly calls: Client<typeof contract>;
  /**
   * Store a general file, up to 20 MiB. Nothing is retried: if the answer is lost, a second upload may store the file twice.
   * `fetch` does not report the upload progress of a `Blob`. To show progress, upload a stream and count the bytes that are read
   * from it.
   * @throws CallFailed if the service refuses the upload, the signal's reason, and the errors of `fetch` and of the source.
   */
  uploadAttachment(source: UploadSource, options?: UploadOptions): Promise<AttachmentReceipt>;
  /** Store an image, sound or video, up to 2 GiB, in the same way as `uploadAttachment`. The MIME type is required. */
  uploadMedia(source: UploadSource, options?: UploadOptions): Promise<MediaMetadata>;
  /**
   * Links to 1-100 media, valid for five minutes. Every person who has a link can use it, and it works in `<img src>`. Rejects
   * with CallFailed if one ID is malformed or belongs to another user.
   */
  mediaLinks(mediaIds: readonly string[], options?: Pick<UploadOptions, "signal">): Promise<MediaLinks>;
  /**
   * Find runs, newest first. The iteration reads further pages while it goes on, so stop it when enough is found. Rejects with CallFailed,
   * and with the signal's reason.
   */
  findRuns(search: RunSearch): AsyncIterable<Run>;
  /**
   * Count the runs that a search finds, by outcome, and by agent and cause. The newest are counted: `complete` is false if older runs match,
   * too. Rejects with CallFailed, and with the signal's reason.
   */
  countRuns(search: RunSearch): Promise<RunCounts>;
  /**
   * The calls of tools that wait for a person's decision, the oldest first. An owner sees all of them, a member those of its own runs. The
   * iteration reads further pages while it goes on. Rejects with CallFailed, and with the signal's reason.
   */
  waitingApprovals(options?: Pick<UploadOptions, "signal">): AsyncIterable<Approval>;
  /**
   * Approve or reject a call. It is decided once.
   * @throws CallFailed: `approval_decided` if it is decided already, has expired, or its turn was stopped; `arguments_invalid` if the
   * arguments do not fit the tool's schema; `approval_not_found`. TypeError for an invalid ID. The signal's reason.
   */
  decideApproval(
    call: Pick<Approval, "runId" | "callId">,
    decision: ApprovalDecision,
    options?: Pick<UploadOptions, "signal">,
  ): Promise<DecidedApproval>;
  /** The standing consents: for an owner all, for a member its own. Rejects with CallFailed, and with the signal's reason. */
  toolConsents(options?: Pick<UploadOptions, "signal">): Promise<readonly ToolConsent[]>;
  /**
   * Revoke a standing consent: later calls of the tool ask again. Rejects with CallFailed, such as `consent_not_found`, and with the
   * signal's reason.
   */
  revokeToolConsent(id: string, options?: Pick<UploadOptions, "signal">): Promise<void>;
  /** Resolves when the realtime connection is established. Rejects if the service refuses the token. */
  connected(): Promise<void>;
  /**
   * Submit a query. The client listens before it submits. If the answer to a submission is lost, the client looks up what
   * happened to the submission. A submission never runs twice.
   * @throws TypeError if a query with this `clientRequestId` is still open in this client, and for a follow-up that has its own
   * `clientRequestId` but no `timestamp`.
   */
  submit(query: QueryOptions | FollowUp, options?: SubmitOptions): Query;
  /**
   * Say something to the turn of an accepted query while it goes on. The agent is told before its next model call; the query then has a message
   * of the type `steering` with the `messageId`. If an answer is lost, the same message is sent again for a minute, and is told once. The same
   * call again after the end says whether the agent was told. A message that was not told is not in the conversation.
   * @throws CallFailed: `turn_ended`, `too_many_messages`, `steering_unsupported`, `request_not_found`. The signal's reason.
   */
  steer(
    query: Pick<Query, "clientRequestId">,
    message: { readonly text: string; readonly messageId?: string | undefined },
    options?: Pick<UploadOptions, "signal">,
  ): Promise<Steered>;
  /**
   * Follow a turn that another client program submitted, from its first message: the `turn` of `calls.runningTurn`. The events arrive over
   * the realtime channel, a moment later than at the program that submitted it. `abort` stops the turn, if it is of this client's user.
   * When the signal aborts, the query ends as `unknown`, and the turn goes on. It also ends as `unknown` if the service cannot show the turn
   * to its end: `reason` says why.
   * @throws TypeError if a query with this `clientRequestId` is open or watched in this client.
   */
  watch(turn: WatchedTurn, options?: Pick<UploadOptions, "signal">): Query;
  /** Close the connection. Queries that are still open end as `unknown`. */
  close(): void;
}

const APPROVALS_PAGE = "50";
const SILENCE_MS = 10_000;
const UNKNOWN_MS = 60_000;
/** How long a submission may be sent again, before a lookup has given the service's own value. */
const AUTO_REPLAY_MS = 10 * 60_000;

/** Connect to an agent service. Returns at once: queries wait for the connection by themselves. */
export function connectAgent(options: AgentClientOptions): AgentClient {
  return new Connection(options);
}

class Connection implements AgentClient {
  readonly clientInstanceId: string;
  readonly calls: Client<typeof contract>;
  readonly #baseURL: string;
  readonly #socket: Wire;
  readonly #silenceMs: number;
  readonly #unknownMs: number;
  readonly #onConnection: (state: ConnectionState) => void;
  readonly #open = new Map<string, Entry>();
  /** The conversation of each watched turn, and the query that shows it. */
  readonly #watched = new Map<string, { readonly query: OpenQuery; readonly conversationId: string }>();
  readonly #closing = new AbortController();
  #refusal: Error | undefined;
  #connection: ConnectionState = "connecting";
  #isCatchingUp = false;
  #isLooking = false;

  constructor({
    baseURL,
    token,
    clientInstanceId,
    fetch,
    realtime,
    transports,
    silenceMs,
    unknownMs,
    onConnection,
  }: AgentClientOptions) {
    this.clientInstanceId = clientInstanceId ?? randomId("client-");
    this.#silenceMs = silenceMs ?? SILENCE_MS;
    this.#unknownMs = unknownMs ?? UNKNOWN_MS;
    this.#onConnection = onConnection ?? (() => {});
    this.#baseURL = baseURL;
    this.calls = createClient(contract, {
      baseURL,
      headers: { "x-agent-service-token": token },
      ...(fetch && { fetch }),
    });
    const { origin, path } = socketPlace(baseURL);
    // Called at every connection: the service replays each query from the position that is given here.
    const hello = () => ({ token, clientInstanceId: this.clientInstanceId, ...this.#received() });
    this.#socket =
      realtime === "websocket"
        ? new WebSocketWire({ url: origin.replace(/^http/, "ws") + path, hello })
        : io(origin, {
            path,
            forceNew: true,
            ...(transports && { transports: [...transports] }),
            auth: (tell) => tell(hello()),
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
    const { clientRequestId } = submission;
    if (this.#open.has(clientRequestId)) throw new TypeError("A query with this clientRequestId is still open");
    const opened = new OpenQuery(submission, () => this.#socket.emit("query:abort", { clientRequestId }));
    const entry: Entry = { query: opened, submission, isAccepted: false };
    this.#open.set(clientRequestId, entry);
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

  steer(
    { clientRequestId }: Pick<Query, "clientRequestId">,
    { text, messageId = randomId("msg-") }: { readonly text: string; readonly messageId?: string | undefined },
    options: Pick<UploadOptions, "signal"> = {},
  ): Promise<Steered> {
    const begun = Date.now();
    return this.#untilAborted(options, async (signal) => {
      for (let attempt = 0; ; attempt++) {
        try {
          const { status } = await this.calls.steer({ params: { clientRequestId }, body: { messageId, text }, signal });
          return { messageId, status };
        } catch (error) {
          if (afterFailure(error) !== "unsure" || Date.now() - begun >= this.#unknownMs) throw error;
          await this.#pause(attempt);
          signal.throwIfAborted();
        }
      }
    });
  }

  watch(turn: WatchedTurn, { signal }: Pick<UploadOptions, "signal"> = {}): Query {
    const { conversationId, clientRequestId } = turn;
    if (this.#open.has(clientRequestId) || this.#watched.has(clientRequestId))
      throw new TypeError("A query with this clientRequestId is still open");
    const query = new OpenQuery(turn, () => this.#socket.emit("query:abort", { conversationId, clientRequestId }));
    query.accept();
    const stop = (reason: string) => this.#end(query, { status: "unknown", reason });
    if (this.#closing.signal.aborted) stop("The client was closed");
    else if (this.#refusal) stop("The service refuses the connection");
    else if (signal?.aborted) stop("No longer watched");
    if (query.isOver) return query;
    this.#watched.set(clientRequestId, { query, conversationId });
    // A later connection asks for it again.
    if (this.#socket.connected) this.#socket.emit("query:watch", { conversationId, clientRequestId });
    const leave = () => {
      if (this.#socket.connected) this.#socket.emit("query:unwatch", { conversationId, clientRequestId });
      stop("No longer watched");
    };
    signal?.addEventListener("abort", leave, { once: true });
    void query.ended.then(() => signal?.removeEventListener("abort", leave));
    return query;
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

  findRuns(search: RunSearch): AsyncIterable<Run> {
    return findRuns(this.calls, search);
  }

  countRuns(search: RunSearch): Promise<RunCounts> {
    return countRuns(this.calls, search);
  }

  waitingApprovals(options: Pick<UploadOptions, "signal"> = {}): AsyncIterable<Approval> {
    return eachApproval((after) =>
      this.#untilAborted(options, (signal) =>
        this.calls.approvals({ query: { limit: APPROVALS_PAGE, ...(after !== undefined && { after }) }, signal }),
      ),
    );
  }

  decideApproval(
    { runId, callId }: Pick<Approval, "runId" | "callId">,
    decision: ApprovalDecision,
    options: Pick<UploadOptions, "signal"> = {},
  ): Promise<DecidedApproval> {
    const params = { id: runId, callId };
    return this.#untilAborted(options, (signal) => this.calls.decideApproval({ params, body: decision, signal }));
  }

  async toolConsents(options: Pick<UploadOptions, "signal"> = {}): Promise<readonly ToolConsent[]> {
    return (await this.#untilAborted(options, (signal) => this.calls.consents({ signal }))).consents;
  }

  revokeToolConsent(id: string, options: Pick<UploadOptions, "signal"> = {}): Promise<void> {
    return this.#untilAborted(options, (signal) => this.calls.revokeConsent({ params: { id }, signal }));
  }

  close(): void {
    this.#closing.abort(new DOMException("The client was closed", "AbortError"));
    this.#stands("closed");
    this.#socket.disconnect();
    for (const { query } of [...this.#open.values(), ...this.#watched.values()])
      this.#end(query, { status: "unknown", reason: "The client was closed" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** Runs until the service has certainly accepted the submission, or refuses it. */
  async #send(submission: Submission, query: OpenQuery, onState: (state: SubmissionState) => void): Promise<void> {
    const begun = Date.now();
    for (let attempt = 0; !query.isOver; attempt++) {
      if (!this.#socket.connected) onState("connecting");
      await this.connected();
      onState("sending");
      try {
        const { duplicate } = await this.#post(submission);
        // The submission is older than this program. A new connection with its position makes the service replay its messages.
        if (duplicate && query.sessionId === undefined && !query.isOver) this.#socket.disconnect().connect();
        return;
      } catch (error) {
        const next = afterFailure(error);
        if (next === "refused") throw error;
        // The events arrived, although the answer was lost.
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

  /**
   * Asks for the state of a submission until the service answers. Throws Unknown if the service cannot tell for `unknownMs`, or if
   * the client may not ask again.
   */
  async #findOut(
    submission: Submission,
    query: OpenQuery,
    begun: number,
    onState: (state: SubmissionState) => void,
  ): Promise<"accepted" | "replay"> {
    const { agentId, clientRequestId, userMessageId } = submission;
    let doubtSince: number | undefined;
    for (let attempt = 0; ; attempt++) {
      if (query.isOver) return "accepted";
      try {
        const { results, autoReplayRetentionMs } = await this.calls.lookup({
          body: { agentId, requests: [{ clientRequestId, userMessageId }] },
          signal: this.#closing.signal,
        });
        const status = results[0]?.status ?? "unknown";
        onState(status);
        const now = Date.now();
        doubtSince = status === "unknown" ? (doubtSince ?? now) : undefined;
        const next = afterLookup(status, { ageMs: now - begun, autoReplayRetentionMs });
        if (next !== "unknown") return next;
        // A store that is briefly unavailable cannot tell, either.
        if (doubtSince === undefined || now - doubtSince >= this.#unknownMs)
          throw new Unknown("The service cannot tell whether the query arrived");
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

  /** Aborts with the caller's signal or when the client closes. Rejects with the reason, whatever error `fetch` makes of it. */
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
    // The answer may arrive after the query ended, when the same submission is open again.
    for (const queries of [this.#open, this.#watched])
      if (queries.get(query.clientRequestId)?.query === query) queries.delete(query.clientRequestId);
  }

  #listen(): void {
    const socket = this.#socket;
    const on = (event: string, told: (query: OpenQuery, data: any) => void) =>
      socket.on(event, (data: { readonly clientRequestId?: string }) => {
        const { clientRequestId } = data ?? {};
        if (clientRequestId === undefined) return;
        const entry = this.#open.get(clientRequestId) ?? this.#watched.get(clientRequestId);
        if (entry) told(entry.query, data);
      });
    on("query:started", (query, data: QueryStarted) => query.begin(data));
    on("query:message", (query, { message }: { readonly message: QueryMessage }) => {
      if (!query.take(message)) this.#catchUp();
    });
    on("query:complete", (query, { terminal, result, seq }) => {
      if (seq > query.seq) return this.#catchUp();
      // Without a structured terminal, the client must not declare an outcome (specification 6.2).
      if (terminal?.status === "completed" || terminal?.status === "interrupted")
        this.#end(query, { status: terminal.status, terminal, result });
    });
    on("query:error", (query, { error, code, seq }) => {
      if (seq > query.seq) return this.#catchUp();
      this.#end(query, { status: "failed", error, code });
    });
    socket.on("query:watch-ended", ({ conversationId, clientRequestId, reason }: WatchEnded) => {
      const watched = this.#watched.get(clientRequestId);
      // An earlier watch of this client may have been of another conversation.
      if (watched?.conversationId === conversationId) this.#end(watched.query, { status: "unknown", reason: WATCH_ENDS[reason] });
    });
    socket.on("connect", () => {
      this.#isCatchingUp = false;
      for (const [clientRequestId, { query, conversationId }] of this.#watched)
        socket.emit("query:watch", { conversationId, clientRequestId, seq: query.seq });
      this.#stands("connected");
    });
    socket.on("connect_error", (error: Error & { readonly data?: { readonly code?: string } }) => {
      if (this.#closing.signal.aborted) return;
      this.#stands("interrupted");
      // Socket.IO reconnects by itself after every error except a refusal.
      if (socket.active) return;
      if (error.data?.code === "internal_error") this.#connectSoon();
      else this.#refuse(error);
    });
    // The service closed the connection, for example because it is about to stop.
    socket.on("disconnect", (reason) => {
      this.#stands("interrupted");
      if (reason === "io server disconnect") this.#connectSoon();
    });
  }

  /** Messages are missing. A new connection sends the position of each query, and the service replays from there. */
  #catchUp(): void {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    const again = () => this.#socket.disconnect().connect();
    this.#pause(1).then(again, () => {});
  }

  #connectSoon(): void {
    const connect = () => this.#socket.connect();
    // The client was closed meanwhile: the connection is no longer needed.
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
    for (const { query } of [...this.#watched.values()])
      this.#end(query, { status: "unknown", reason: "The service refuses the connection" });
  }

  /**
   * Watches accepted queries for as long as one is open. If a run has come to rest without its end, a new connection makes the service replay
   * what was missed. The service cannot replay messages that it no longer keeps, or that belong to another client program: then the query ends as
   * unknown.
   */
  async #lookAfter(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const accepted = () => [...this.#open.values()].filter(({ isAccepted, query }) => isAccepted && !query.isOver);
    /** Queries whose run was at rest at the last look, each with its position, and at how many looks in a row. */
    let rested = new Map<OpenQuery, { readonly seq: number; readonly looks: number }>();
    while (!this.#closing.signal.aborted && accepted().length > 0) {
      await this.#sleep(this.#silenceMs).catch(() => {});
      if (!this.#socket.connected) continue;
      const resting: typeof rested = new Map();
      let isMissing = false;
      for (const entry of accepted()) {
        const { query } = entry;
        if (!(await this.#isAtRest(entry)) || query.isOver) continue;
        const { seq } = query;
        const before = rested.get(query);
        const looks = before?.seq === seq ? before.looks + 1 : 1;
        // Without a message between two looks: messages in transit have arrived by now.
        if (looks === 2) isMissing = true;
        if (looks < 4) resting.set(query, { seq, looks });
        else this.#end(query, { status: "unknown", reason: "The run has come to rest, and its end was not told" });
      }
      rested = resting;
      if (isMissing && !this.#closing.signal.aborted) this.#socket.disconnect().connect();
    }
    this.#isLooking = false;
  }

  /** Whether a query's turn can no longer be executing: its run is at rest, or the service does not know the query any more. */
  async #isAtRest(entry: Entry): Promise<boolean> {
    const { query, submission } = entry;
    const { agentId, clientRequestId } = submission;
    const { signal } = this.#closing;
    try {
      const { results } = await this.calls.lookup({ body: { agentId, requests: [{ clientRequestId }] }, signal });
      const { status, sessionId = query.sessionId } = results[0] ?? { status: "unknown" };
      entry.doubtSince = status === "unknown" ? (entry.doubtSince ?? Date.now()) : undefined;
      if (status === "reserved") return false;
      if (entry.doubtSince !== undefined && Date.now() - entry.doubtSince < this.#unknownMs) return false;
      if (status !== "committed" || sessionId === undefined) return true;
      const id = sessionId.replace(/^ses_/, "run_");
      return (await this.calls.runtimeState({ params: { id }, signal })).status !== "running";
    } catch (error) {
      // A run that was removed sends no more messages. A service that is unreachable may return.
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

/**
 * The server's origin and the path of the channel. Socket.IO takes them separately: it reads a path after the origin as a
 * namespace.
 */
function socketPlace(baseURL: string): { readonly origin: string; readonly path: string } {
  const { origin, pathname } = new URL(baseURL, globalThis.location?.href);
  return { origin, path: `${pathname.replace(/\/$/, "")}/socket.io/` };
}

/** Maximum entries that the service accepts in one hello. */
const MOST_RECEIVED = 100;

/** A query that has not ended. */
interface Entry {
  readonly query: OpenQuery;
  readonly submission: Submission;
  isAccepted: boolean;
  /** Since when lookups say `unknown`. Milliseconds since 1970. */
  doubtSince?: number | undefined;
}

interface WatchEnded {
  readonly conversationId: string;
  readonly clientRequestId: string;
  readonly reason: keyof typeof WATCH_ENDS;
}

/** Why the service ended a watch. */
const WATCH_ENDS = {
  not_found: "There is no such turn, or it belongs to another user",
  output_removed: "The turn has ended, and its output is no longer kept",
  too_many: "This client has begun too many watches",
  failed: "The service cannot read the output of the turn",
};

/** The client cannot find out more. */
class Unknown extends Error {
  override readonly name = "Unknown";
}
