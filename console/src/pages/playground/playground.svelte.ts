import { CallFailed } from "@portico/core/client";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { describeFailure } from "../../api/describe-failure.ts";
import type { Instance } from "../../api/instance.ts";
import { PageFailure } from "../../api/page-failure.ts";
import type { Provider } from "../providers/ProviderTable.svelte";
import type { ArrivingAnswer } from "./answer/arriving-answer.ts";
import { readChatChunk, readCompletion } from "./answer/chat-answer.ts";
import { readMessage, readMessagesEvent } from "./answer/messages-answer.ts";
import type { AnswerFacts, AnswerUsage, AssistantTurn, Protocol, Turn, TurnImage } from "./conversation.ts";
import { type ModelRequest, requestBody } from "./request-body.ts";
import { closeImage } from "./turns/turn-image.ts";

/** To whom a request goes, and the prices there. */
interface Target {
  readonly provider: Provider;
  readonly currency: string | undefined;
}

const FIRST_MAX_TOKENS = 1024;

/** The texts of the playground, and its running call. They stay in memory until the session ends, also while another page is shown. */
export class Playground {
  /** The query of the page's address, as it was last. */
  address = "";
  system = $state("");
  temperature = $state<number | null>(null);
  maxTokens = $state<number | null>(FIRST_MAX_TOKENS);
  isStream = $state(true);
  /** JSON, in the shape of the protocol. */
  tools = $state("");
  /** A JSON object with further fields of the request. */
  more = $state("");
  turns = $state<Turn[]>([]);
  /** The answer that arrives. */
  running = $state.raw<AssistantTurn>();
  outcome = $state<AnswerFacts["outcome"]>();
  /** Why the last call failed. */
  problem = $state<string>();
  readonly #instance: Instance;
  #keys = 0;
  #calling: AbortController | undefined;

  constructor(instance: Instance) {
    this.#instance = instance;
    instance.ended.addEventListener("abort", () => this.#close(), { once: true });
    this.addUser();
  }

  /** Whether the user wrote something that leaving the console would lose. */
  get isWritten(): boolean {
    return this.system !== "" || this.tools !== "" || this.more !== "" || this.turns.length > 1 || this.turns.some(isWritten);
  }

  addUser(): void {
    this.turns.push({ role: "user", key: this.#keys++, text: "", images: [] });
  }

  /** An answer that the user writes in place of the model. */
  addAssistant(): void {
    this.turns.push({ role: "assistant", key: this.#keys++, parts: [{ type: "text", text: "" }] });
  }

  remove(turn: Turn): void {
    closeImages(turn);
    this.turns = this.turns.filter(({ key }) => key !== turn.key);
    if (this.turns.length === 0) this.addUser();
  }

  /** Forgets the conversation. The settings stay. */
  clear(): void {
    for (const turn of this.turns) closeImages(turn);
    this.turns = [];
    this.outcome = undefined;
    this.problem = undefined;
    this.addUser();
  }

  stop(): void {
    this.#calling?.abort();
  }

  /** Sends the conversation and adds the answer to it. Never rejects: failures are in `problem`. */
  async send(request: ModelRequest, { provider, currency }: Target): Promise<void> {
    const { signal } = (this.#calling = new AbortController());
    const body = requestBody(request);
    // The message that was not written is not sent: the answer takes its place.
    this.turns = this.turns.filter((turn) => turn.role === "assistant" || isWritten(turn));
    this.turns.push({ role: "assistant", key: this.#keys++, parts: [] });
    // Read from the state, so that changes of it are shown.
    const turn = this.turns.at(-1) as AssistantTurn;
    const into: ArrivingAnswer = { parts: turn.parts, usage: {}, stopReason: undefined };
    this.running = turn;
    this.problem = undefined;
    this.outcome = undefined;

    const { proxy } = this.#instance;
    let first: number | undefined;
    let dropped: string | undefined;
    let began = performance.now();
    let outcome: AnswerFacts["outcome"] = "completed";
    try {
      const client = proxy.client(await proxy.token(provider.id));
      signal.throwIfAborted();
      began = performance.now();
      const response = await (request.protocol === "messages"
        ? client.messages({ body, signal })
        : client.chatCompletions({ body, signal }));
      dropped = response.headers.get("x-portico-dropped") ?? undefined;
      const arrived = () => {
        if (into.parts.length > 0) first ??= performance.now();
      };
      if (request.isStream) await readStream(request.protocol, response.body!, into, arrived);
      else readWhole(request.protocol, (await response.json()) as object, into);
    } catch (error) {
      outcome = signal.aborted ? "stopped" : "failed";
      if (outcome === "failed") this.problem = describeProblem(error);
      // The token was revoked elsewhere: the next call issues another.
      if (CallFailed.is(error) && error.status === 401) proxy.forget();
    }
    if (this.#instance.ended.aborted) return;
    const totalMs = performance.now() - began;
    const price = provider.prices?.find(({ model }) => model === request.model);
    const cost = costOf(into.usage, price);
    turn.facts = {
      ...{ outcome, totalMs, usage: into.usage },
      ...(first !== undefined && { firstMs: first - began }),
      ...(into.stopReason !== undefined && { stopReason: into.stopReason }),
      ...(dropped !== undefined && { dropped }),
      ...(cost !== undefined && { cost }),
      ...(currency !== undefined && { currency }),
    };
    this.#end(turn, outcome);
  }

  #end(turn: AssistantTurn, outcome: AnswerFacts["outcome"]): void {
    // The arguments of a call that was cut are invalid JSON, and the call cannot be sent back.
    if (outcome !== "completed") turn.parts = turn.parts.filter((part) => part.type !== "tool" || isJson(part.arguments));
    this.outcome = outcome;
    this.running = undefined;
    this.#calling = undefined;
    const isShown = turn.parts.length > 0 || outcome === "completed";
    if (!isShown) this.turns = this.turns.filter(({ key }) => key !== turn.key);
    // After tool calls, their results come next.
    if (isShown && !turn.parts.some(({ type }) => type === "tool")) this.addUser();
  }

  #close(): void {
    this.stop();
    for (const turn of this.turns) closeImages(turn);
  }
}

/** The sentence of the provider or of the proxy, and the status that a program would get. */
function describeProblem(error: unknown): string {
  const sentence = describeFailure(error);
  if (!CallFailed.is(error) || sentence.includes(String(error.status))) return sentence;
  return `${sentence} (status ${error.status})`;
}

function isWritten(turn: Turn): boolean {
  return turn.role === "assistant" || turn.text !== "" || turn.images.length > 0;
}

function closeImages(turn: Turn): void {
  if (turn.role === "user") for (const image of turn.images as readonly TurnImage[]) closeImage(image);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const opened = new WeakMap<Instance, Playground>();

/** The playground of this session. */
export function playgroundOf(instance: Instance): Playground {
  const playground = opened.get(instance) ?? new Playground(instance);
  opened.set(instance, playground);
  return playground;
}

type Price = NonNullable<Provider["prices"]>[number];

const MILLION = 1_000_000;

/** The cost of a call. Undefined without a price, and if the provider did not report the tokens. */
function costOf({ input, output, cachedInput = 0, cacheWrite = 0 }: AnswerUsage, price: Price | undefined): number | undefined {
  if (!price || input === undefined || output === undefined) return undefined;
  const fresh = Math.max(0, input - cachedInput - cacheWrite);
  const ofInput =
    fresh * price.input + cachedInput * (price.cachedInput ?? price.input) + cacheWrite * (price.cacheWrite ?? price.input);
  return (ofInput + output * price.output) / MILLION;
}

/**
 * Adds an answer's events to it as they arrive, and calls `arrived` after each. Throws the stream's own error. Also throws if the stream
 * ends without the mark of a normal end: status 200 and a started answer do not prove success (specification 4.1).
 */
async function readStream(
  protocol: Protocol,
  body: ReadableStream<BufferSource>,
  into: ArrivingAnswer,
  arrived: () => void,
): Promise<void> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data) as AnyEvent;
    if (event.error) throw new PageFailure(event.error.message ?? "The stream failed");
    if (event.type === "message_stop") return;
    if (protocol === "messages") readMessagesEvent(event, into);
    else readChatChunk(event, into);
    arrived();
  }
  // Some providers of Chat Completions do not send the end marker.
  if (protocol === "messages" || into.stopReason === undefined)
    throw new PageFailure("The stream ended before the answer was complete");
}

type AnyEvent = Parameters<typeof readMessagesEvent>[0] &
  Parameters<typeof readChatChunk>[0] & { readonly error?: { readonly message?: string } };

/** Adds a whole answer. */
function readWhole(protocol: Protocol, answer: object, into: ArrivingAnswer): void {
  if (protocol === "messages") readMessage(answer, into);
  else readCompletion(answer, into);
}
