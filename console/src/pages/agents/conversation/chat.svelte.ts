import type { AgentClient, FollowUp, QueryOptions, QueryStarted } from "@portico/client";
import { CallFailed, type CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { untrack } from "svelte";
import type { OutgoingFiles } from "../composer/outgoing-files.svelte.ts";
import { LiveTurn } from "./live-turn.svelte.ts";
import { ShownTurn } from "./shown-turn.svelte.ts";
import { type KeptMessage, placesOf, type SentFile, type Siblings, toTurns, type Turn, type TurnPlace } from "./turn.ts";

/** Messages of one page of a conversation. */
const PAGE = 50;

/** A conversation with an agent: its stored messages, its running turns, and the draft. */
export class Chat {
  readonly agentId: string;
  /** Undefined until the first turn of a new conversation has started. */
  conversationId = $state<string>();
  sessionId = $state<string>();
  /** The user's unsent text and files. */
  draft = $state("");
  readonly files: OutgoingFiles;
  /** The error of the last attempt to load the stored messages. */
  error = $state.raw<unknown>();
  isLoaded = $state(false);
  /** The end of the page before the first loaded message. Undefined if no earlier page exists. */
  before = $state<number>();
  #kept = $state.raw<ReadonlyMap<number, KeptMessage>>(new Map());
  #siblings = $state.raw<ReadonlyMap<string, Siblings>>(new Map());
  readonly #ordered = $derived([...this.#kept.values()].toSorted((a, b) => a.sequence - b.sequence));
  /** Where the stored turns are in the conversation, by key. */
  readonly places: ReadonlyMap<string, TurnPlace> = $derived(placesOf(this.#ordered, this.#siblings));
  /** The branch whose messages are loaded. */
  #branch: number | undefined;
  #live = $state<LiveTurn[]>([]);
  #watched = $state.raw<WatchedTurn>();
  readonly #client: AgentClient;
  readonly #found: (chat: Chat) => void;

  /** `found` is called when a new conversation has received its ID. */
  constructor(given: {
    readonly client: AgentClient;
    readonly agentId: string;
    readonly conversationId: string | undefined;
    readonly files: OutgoingFiles;
    readonly found: (chat: Chat) => void;
  }) {
    this.#client = given.client;
    this.#found = given.found;
    this.agentId = given.agentId;
    this.files = given.files;
    this.conversationId = given.conversationId;
    this.isLoaded = given.conversationId === undefined;
  }

  /** In order. Turns that were submitted here have more details than stored turns. */
  get turns(): readonly Turn[] {
    const watched = this.#watched;
    const live = new Map<string, Turn>([...this.#live, ...(watched ? [watched] : [])].map((turn) => [turn.key, turn]));
    const kept = toTurns(this.#ordered).map((turn) => {
      const own = live.get(turn.key);
      live.delete(turn.key);
      return own ?? turn;
    });
    return [...kept, ...live.values()];
  }

  /** The unfinished turns that were submitted here. The first one runs or will run next. */
  get open(): readonly LiveTurn[] {
    return this.#live.filter(({ isOver }) => !isOver);
  }

  /** The running turn that was started elsewhere, while it is followed. */
  get watched(): WatchedTurn | undefined {
    return this.#watched;
  }

  /** Whether another message can be sent now: the first message of a new conversation creates it. */
  get canSend(): boolean {
    return this.conversationId !== undefined || this.open.length === 0;
  }

  /** Writes a text at the end of the draft, unless the draft ends with it already. */
  write(text: string): void {
    if (this.draft.trim() === "") this.draft = text;
    else if (!`\n\n${this.draft}`.endsWith(`\n\n${text}`)) this.draft += `\n\n${text}`;
  }

  /** Load the newest page, and keep the earlier loaded pages. Never rejects. */
  async load(): Promise<void> {
    const id = this.conversationId;
    if (id === undefined) return;
    try {
      const page = await this.#client.calls.messages({ params: { id }, query: { limit: String(PAGE) } });
      const { messages, before, branch, branches } = page;
      const [first] = messages;
      const isSameBranch = branch === (this.#branch ??= branch);
      if (!isSameBranch) this.#live = this.#live.filter(isNotStored);
      this.#branch = branch;
      // Numbers restart after clearing. If the new page does not continue the loaded ones, there would be a gap.
      const isContinued = isSameBranch && first !== undefined && this.#kept.get(first.sequence)?.id === first.id;
      this.#kept = new Map([
        ...(isContinued ? this.#kept : []),
        ...messages.map((message) => [message.sequence, message] as const),
      ]);
      this.#siblings = new Map([...(isContinued ? this.#siblings : []), ...bySibling(branches)]);
      if (!isContinued) this.before = before;
      this.error = undefined;
    } catch (error) {
      this.error = error;
    }
    this.isLoaded = true;
  }

  /** Follows turns of this conversation that were started elsewhere, until none runs. Never rejects. */
  async watch(signal: AbortSignal): Promise<void> {
    const id = this.conversationId;
    if (id === undefined || this.#watched) return;
    try {
      for (let last: string | undefined; ;) {
        const { turn } = await this.#client.calls.runningTurn({ params: { id }, signal });
        const isKnown =
          turn === null || turn.clientRequestId === last || this.#live.some(({ key }) => key === turn.clientRequestId);
        if (isKnown || this.#watched || signal.aborted) return;
        last = turn.clientRequestId;
        const watched = (this.#watched = new WatchedTurn(this.#client, id, turn));
        await watched.follow(signal);
        if (watched.isOver) this.#bringBack(watched);
        // The stored messages replace it.
        if (!signal.aborted) await this.load();
        this.#watched = undefined;
      }
    } catch {
      // The page looks again when the run changes.
      this.#watched = undefined;
    }
  }

  /** Rejects like every call. */
  async loadEarlier(): Promise<void> {
    const query = { limit: String(PAGE), before: String(this.before), branch: String(this.#branch ?? 1) };
    const { messages, before, branches } = await this.#client.calls.messages({ params: { id: this.conversationId! }, query });
    this.#kept = new Map([...messages.map((message) => [message.sequence, message] as const), ...this.#kept]);
    this.#siblings = new Map([...bySibling(branches), ...this.#siblings]);
    this.before = before;
  }

  /** Submit the draft. Resolves at the end of the turn. */
  async send(prompt: string, files: readonly SentFile[]): Promise<void> {
    await this.#submit({ ...this.#address(files), prompt }, { prompt, files });
  }

  /** Sends another text in the place of a stored turn's, with the same files. What followed stays in another branch. Resolves at the end. */
  async replace(turn: Turn, prompt: string): Promise<void> {
    const replaces = this.places.get(turn.key)!.questionId;
    await this.#submitInPlace(turn, prompt, { ...this.#inConversation(turn.files), prompt, replaces });
  }

  /** Makes a stored turn again. Its earlier answer stays in another branch. Resolves at the end. */
  async regenerate(turn: Turn): Promise<void> {
    const { prompt } = turn;
    const regenerates = this.places.get(turn.key)!.answerId;
    if (regenerates === undefined) await this.replace(turn, prompt);
    else await this.#submitInPlace(turn, prompt, { ...this.#inConversation([]), prompt: "", regenerates });
  }

  /** Shows another branch, which the next message continues. Rejects like every call. */
  async choose(branch: number): Promise<void> {
    await this.#client.calls.chooseBranch({ params: { id: this.conversationId! }, body: { branch } });
    await this.load();
  }

  async #submitInPlace(turn: Turn, prompt: string, query: Omit<QueryOptions, "clientRequestId">): Promise<void> {
    const { sequence } = this.places.get(turn.key)!;
    const later = new Set([...this.places].filter(([, place]) => place.sequence >= sequence).map(([key]) => key));
    this.#kept = new Map([...this.#kept].filter(([at]) => at < sequence));
    this.#live = this.#live.filter(({ key }) => !later.has(key));
    await this.#submit(query, { prompt, files: turn.files });
    // The service knows which turns are shown now, also if it refused this one.
    await this.load();
  }

  async #submit(
    query: Omit<QueryOptions, "clientRequestId"> | Omit<FollowUp, "clientRequestId">,
    shown: { readonly prompt: string; readonly files: readonly SentFile[] },
  ): Promise<void> {
    const ids = { clientRequestId: newId("req_"), userMessageId: newId("msg_") };
    const turn = new LiveTurn({
      client: this.#client,
      submitted: { ...query, ...ids },
      ...shown,
      begun: (started) => this.#begun(started),
    });
    this.#live.push(turn);
    await this.follow(this.#live.at(-1)!);
  }

  /** Says something to a turn while it goes on. If the turn has completed meanwhile, it is sent as the next message. Rejects like every call. */
  async steer(turn: ShownTurn, text: string): Promise<void> {
    const message = { messageId: newId("msg_"), text };
    turn.pending = [...turn.pending, message];
    try {
      await this.#client.steer({ clientRequestId: turn.key }, message);
    } catch (error) {
      // The end of the turn may have brought it back already.
      if (!turn.drop(message.messageId)) return;
      const isStopped = turn.isStopping || (turn.isOver && turn.state !== "completed");
      if (isStopped || !CallFailed.is(error) || error.code !== "turn_ended") throw error;
      void this.send(text, []);
      return;
    }
    if (turn.isOver) this.#bringBack(turn);
  }

  /**
   * What the agent was not told: the next message after a turn that completed, or else text of the draft. So is what another page said, which
   * may send it itself.
   */
  #bringBack(turn: ShownTurn): void {
    const { pending } = turn;
    turn.pending = [];
    const next = turn.state === "completed" ? pending.filter(({ isOfAnother }) => !isOfAnother) : [];
    const draft = pending.filter((message) => !next.includes(message));
    if (next.length > 0) void this.send(next.map(({ text }) => text).join("\n\n"), []);
    if (draft.length > 0) this.write(draft.map(({ text }) => text).join("\n\n"));
  }

  /** Submit a turn, or submit it again unchanged, and load the stored messages at its end. */
  async follow(turn: LiveTurn): Promise<void> {
    await turn.submit();
    this.#bringBack(turn);
    // An ended session is not continued; the conversation is.
    if (turn.state === "refused") this.sessionId = undefined;
  }

  /** Remove a turn that failed from the conversation. */
  forget(turn: Turn): void {
    this.#live = this.#live.filter(({ key }) => key !== turn.key);
  }

  /** Interrupts the running turn, and removes all messages. Rejects like every call. */
  async clear(): Promise<void> {
    await this.#client.calls.clear({ params: { id: this.conversationId! } });
    this.#kept = new Map();
    this.#siblings = new Map();
    this.#branch = undefined;
    this.#live = [];
    this.before = undefined;
    this.sessionId = undefined;
  }

  /** Messages with files use a query of a conversation; messages without files continue its session (specification 4.6). */
  #address(files: readonly SentFile[]): Omit<QueryOptions, "prompt"> | Omit<FollowUp, "prompt"> {
    const { agentId, sessionId } = this;
    if (sessionId !== undefined && files.length === 0) return { agentId, sessionId, timestamp: Date.now() };
    return this.#inConversation(files);
  }

  #inConversation(files: readonly SentFile[]): Omit<QueryOptions, "prompt"> {
    const { agentId, conversationId } = this;
    const of = (kind: SentFile["kind"]) => files.filter((file) => file.kind === kind).map(({ reference }) => reference);
    return {
      agentId,
      ...(conversationId !== undefined && { conversationId }),
      ...(of("media").length > 0 && { mediaRefs: of("media").map((mediaId) => ({ mediaId })) }),
      ...(of("attachment").length > 0 && { fileReferences: of("attachment") }),
    };
  }

  #begun({ sessionId, conversationId }: QueryStarted): void {
    this.sessionId = sessionId;
    if (conversationId === undefined || untrack(() => this.conversationId) !== undefined) return;
    this.conversationId = conversationId;
    this.#found(this);
  }
}

/** A turn that is in no branch, because the service refused it or its fate is unknown, or that has not ended. */
function isNotStored({ isOver, state }: LiveTurn): boolean {
  return !isOver || state === "refused" || state === "unknown";
}

function bySibling(branches: readonly (Siblings & { readonly messageId: string })[]): readonly (readonly [string, Siblings])[] {
  return branches.map((siblings) => [siblings.messageId, siblings] as const);
}

function newId(prefix: string): string {
  // Not `randomUUID`, because it is missing on pages from plain HTTP.
  return prefix + Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

type RunningTurn = NonNullable<CallResult<typeof conversationsRunsContract.runningTurn>["turn"]>;

/** A turn that another client program or another agent began, from its first event to its end. */
class WatchedTurn extends ShownTurn {
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
    this.pending = turn.steering.map((message) => ({ ...message, isOfAnother: true as const }));
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
