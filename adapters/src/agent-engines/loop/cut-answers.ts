import type { ports } from "@portico/core";
import type { AnswerCut } from "./model-answer.ts";

/** How often a turn asks a model to continue a cut answer. */
const MOST = 3;

const GO_ON =
  "Your last answer was cut off at its limit of tokens. Go on exactly where it ended, and repeat nothing. " +
  "A tool call that was cut off was not run: make it again, smaller if need be.";

/** The pieces of an answer that was cut at its token limit, if the agent's `onMaxTokens` is `continue`. */
export class CutAnswers {
  readonly #isContinued: boolean;
  #pieces: readonly ports.MessagePart[] | undefined;
  #count = 0;

  constructor(agent: ports.AgentDefinition) {
    this.#isContinued = agent.onMaxTokens === "continue";
  }

  /**
   * The messages that follow the conversation: the answer so far, and the request to continue. They are not kept in the
   * conversation.
   */
  get prompt(): readonly ports.ConversationMessage[] {
    if (!this.#pieces) return [];
    return [
      { role: "assistant", parts: this.#pieces },
      { role: "user", parts: [{ type: "text", text: GO_ON }] },
    ];
  }

  /** The whole answer, given its last piece. */
  whole(parts: readonly ports.MessagePart[]): readonly ports.MessagePart[] {
    const before = this.#pieces ?? [];
    const [last, first] = [before.at(-1), parts[0]];
    if (last?.type !== "text" || first?.type !== "text") return [...before, ...parts];
    return [...before.slice(0, -1), { type: "text", text: last.text + first.text }, ...parts.slice(1)];
  }

  /** Whether the model is asked to continue. `parts` is the whole answer so far. */
  goOn(cut: AnswerCut, parts: readonly ports.MessagePart[]): boolean {
    if (cut !== "max_tokens" || !this.#isContinued || this.#count >= MOST) return false;
    this.#count++;
    this.#pieces = parts;
    return true;
  }

  /** The answer is complete: the next one begins without pieces. */
  clear(): void {
    this.#pieces = undefined;
  }
}
