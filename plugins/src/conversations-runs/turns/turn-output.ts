import type { ports } from "@portico/core";
import { EVENT_CHARACTERS } from "../limits.ts";
import { boundedResult, boundedText, boundedValue } from "./bounds.ts";
import { Produced } from "./produced.ts";
import type { Transcript } from "./transcript.ts";
import { identifiersOf, type PlayedTurn, type TurnEvent, type TurnMessage } from "./turn.ts";
import type { UserMessage } from "./user-message.ts";

/** Makes a turn's messages of what its agent says, and numbers them (open points 7). */
export class TurnOutput {
  readonly produced: Produced;
  readonly #turn: PlayedTurn;
  readonly #transcript: Transcript;
  #seq = 0;
  #messages = 0;
  #open: { readonly type: string; readonly id: string } | undefined;

  /** `before`: what a turn said that goes on after a wait. */
  constructor(turn: PlayedTurn, transcript: Transcript, before?: { readonly produced: Produced; readonly messages: number }) {
    this.#turn = turn;
    this.#transcript = transcript;
    this.produced = before?.produced ?? new Produced();
    this.#seq = this.produced.seq;
    this.#messages = before?.messages ?? 0;
  }

  /** The number of the last message. */
  get seq(): number {
    return this.#seq;
  }

  /** Pieces of one kind belong to one message; anything else begins another. */
  say(saying: ports.Saying): void | Promise<void> {
    // An engine that goes on talking after its turn has ended is not heard.
    if (this.#transcript.isOver) return;
    switch (saying.type) {
      case "text":
      case "thinking":
        return this.#piece(saying.type, saying.delta);
      case "tool_call": {
        const { callId, toolId, name, arguments: args } = saying;
        const content = { callId, toolId, name, arguments: boundedValue(args, EVENT_CHARACTERS) };
        const taken = this.#whole("assistant", "tool_call", content);
        this.#hurry();
        return taken;
      }
      case "tool_result": {
        const { callId, toolId, result } = saying;
        const taken = this.#whole("tool", "tool_result", { callId, toolId, result: boundedResult(result) });
        this.#hurry();
        return taken;
      }
      case "summary":
        return this.#whole("assistant", "summary", { text: boundedText(saying.text, EVENT_CHARACTERS / 2) });
    }
  }

  /** Resolves when everything said so far is durable. Rejects with LogUnavailable; then it may be asked again. */
  written(): Promise<void> {
    return this.#transcript.flush();
  }

  /** What a tool carries to the user at once. */
  deliver(message: UserMessage): void | Promise<void> {
    return this.#whole("assistant", "delivery", message);
  }

  /** No call without a result has run, and none will: the model of the next turn is told so. */
  refuseOpenCalls(text: string): void {
    for (const { callId, toolId } of this.produced.openCalls)
      void this.say({ type: "tool_result", callId, toolId, result: { content: [{ type: "text", text }], isError: true } });
  }

  /** The agent is told what the user said while the turn went on. */
  steer({ id, text }: { readonly id: string; readonly text: string }): void | Promise<void> {
    return this.#whole("user", "steering", { messageId: id, text });
  }

  /** The decision about a call, when the turn goes on. */
  sayDecision(content: object): void {
    void this.#whole("assistant", "approval", content);
  }

  /** The messages of calls that wait for a person, for the commit in which the turn begins to wait. They are not said before that. */
  askingFor(contents: readonly object[]): readonly TurnEvent[] {
    return contents.map((content, at) => {
      const [id, seq] = [`${this.#turn.turnId}-${this.#messages + at + 1}`, this.#seq + at + 1];
      return this.#event({ id, role: "assistant", type: "approval", content, seq });
    });
  }

  /**
   * Calls and results of tools are flushed at once. A tool waits until its call is stored (`written`). The flush of a call runs while the engine
   * stores the step, so both share one commit.
   */
  #hurry(): void {
    void this.#transcript.flush().catch(() => {});
  }

  #piece(type: "text" | "thinking", delta: string): void | Promise<void> {
    if (this.#open?.type !== type) this.#open = { type, id: this.#nextId() };
    const { id } = this.#open;
    let taken: void | Promise<void> = undefined;
    // A piece that no connection could carry at once becomes several.
    for (let from = 0; from < delta.length || from === 0; from += EVENT_CHARACTERS) {
      const part = delta.slice(from, from + EVENT_CHARACTERS);
      taken = this.#emit({ id, role: "assistant", type, delta: part, seq: ++this.#seq }, part.length);
    }
    return taken;
  }

  #whole(role: TurnMessage["role"], type: TurnMessage["type"], content: unknown): void | Promise<void> {
    this.#open = undefined;
    return this.#emit({ id: this.#nextId(), role, type, content, seq: ++this.#seq }, JSON.stringify(content).length);
  }

  #emit(message: TurnMessage, size: number): void | Promise<void> {
    const event = this.#event(message);
    this.produced.add(event);
    return this.#transcript.add(event, size + ENVELOPE_CHARACTERS);
  }

  #event(message: TurnMessage): TurnEvent {
    return { event: "query:message", data: { ...identifiersOf(this.#turn), message } };
  }

  #nextId(): string {
    return `${this.#turn.turnId}-${++this.#messages}`;
  }
}

/** What an event takes beside its content, about. */
const ENVELOPE_CHARACTERS = 400;
