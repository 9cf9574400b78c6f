import type { Instance } from "../../api/instance.ts";
import { callModel, type EndedCall, type ModelCall } from "./answer/call-model.ts";
import type { AnswerFacts, AssistantTurn, Turn, TurnImage } from "./conversation.ts";
import { closeImage } from "./turns/turn-image.ts";

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
  /** Keys of the answers that arrive. */
  running = $state.raw<readonly number[]>([]);
  outcome = $state<AnswerFacts["outcome"]>();
  /** Why the last call failed, if one model was called. */
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

  /**
   * Sends the conversation of each model and adds the answers to them. Two models are called at once; undefined for a model that has nothing to
   * answer. Never rejects: failures are in `problem`, or in the answers of two models.
   */
  async send(calls: readonly [ModelCall] | readonly [ModelCall | undefined, ModelCall | undefined]): Promise<void> {
    const { signal } = (this.#calling = new AbortController());
    const isPair = calls.length === 2;
    // The message that was not written is not sent, and neither are failed answers: the answer takes their place.
    this.turns = this.turns.filter((turn) => (turn.role === "assistant" ? !isFailed(turn) : isWritten(turn)));
    const empty = (call: ModelCall | undefined): AssistantTurn => ({
      ...{ role: "assistant", key: this.#keys++, parts: [] },
      ...(isPair && call && { by: `${call.provider.id}: ${call.request.model}` }),
    });
    this.turns.push({ ...empty(calls[0]), ...(isPair && { beside: empty(calls[1]) }) });
    // Read from the state, so that changes of it are shown.
    const turn = this.turns.at(-1) as AssistantTurn;
    const asked = [turn, turn.beside].flatMap((answer, at) => {
      const call = calls[at];
      return answer && call ? [{ answer, call }] : [];
    });
    this.running = asked.map(({ answer }) => answer.key);
    this.problem = undefined;
    this.outcome = undefined;
    const ended = await Promise.all(
      asked.map(async ({ answer, call }) => {
        const end = await callModel(this.#instance, call, answer, signal);
        this.#endAnswer(answer, end, isPair);
        return end.facts.outcome;
      }),
    );
    if (!this.#instance.ended.aborted) this.#end(turn, ended);
  }

  #endAnswer(answer: AssistantTurn, { facts, problem }: EndedCall, isPair: boolean): void {
    answer.facts = facts;
    // The arguments of a call that was cut are invalid JSON, and the call cannot be sent back.
    if (facts.outcome !== "completed")
      answer.parts = answer.parts.filter((part) => part.type !== "tool" || isJson(part.arguments));
    this.running = this.running.filter((key) => key !== answer.key);
    if (problem === undefined) return;
    if (isPair) answer.problem = problem;
    else this.problem = problem;
  }

  #end(turn: AssistantTurn, outcomes: readonly AnswerFacts["outcome"][]): void {
    this.outcome = (["failed", "stopped"] as const).find((each) => outcomes.includes(each)) ?? "completed";
    this.#calling = undefined;
    const isAnswered = !isFailed(turn);
    // The errors of two models are in their answers.
    if (!isAnswered && !turn.beside) this.turns = this.turns.filter(({ key }) => key !== turn.key);
    // After tool calls, their results come next.
    const parts = [...turn.parts, ...(turn.beside?.parts ?? [])];
    if (isAnswered && !parts.some(({ type }) => type === "tool")) this.addUser();
  }

  #close(): void {
    this.stop();
    for (const turn of this.turns) closeImages(turn);
  }
}

function isWritten(turn: Turn): boolean {
  return turn.role === "assistant" || turn.text !== "" || turn.images.length > 0;
}

/** Whether calls failed before anything of an answer arrived. */
function isFailed({ parts, facts, beside }: AssistantTurn): boolean {
  const isEmpty = parts.length === 0 && facts?.outcome !== "completed";
  return isEmpty && (beside ? isFailed(beside) : true);
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
