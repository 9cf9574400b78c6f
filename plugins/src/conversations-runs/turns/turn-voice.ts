import type { ports } from "@portico/core";
import { Produced } from "./produced.ts";
import type { Transcript } from "./transcript.ts";
import { identifiersOf, type Turn, type TurnEvent, type TurnMessage } from "./turn.ts";

/** Makes a turn's messages of what its agent says, and numbers them (open points 7). */
export class TurnVoice {
  readonly produced = new Produced();
  readonly #turn: Turn;
  readonly #transcript: Transcript;
  #seq = 0;
  #messages = 0;
  #open: { readonly type: string; readonly id: string } | undefined;

  constructor(turn: Turn, transcript: Transcript) {
    this.#turn = turn;
    this.#transcript = transcript;
  }

  /** Pieces of one kind belong to one message; anything else begins another. */
  say(saying: ports.Saying): void | Promise<void> {
    switch (saying.type) {
      case "text":
      case "thinking": {
        if (this.#open?.type !== saying.type) this.#open = { type: saying.type, id: this.#nextId() };
        const { type, delta } = saying;
        return this.#tell({ id: this.#open.id, role: "assistant", type, delta, seq: ++this.#seq }, delta.length);
      }
      case "tool_call": {
        const { callId, toolId, name, arguments: args } = saying;
        return this.#whole("assistant", "tool_call", { callId, toolId, name, arguments: args });
      }
      case "tool_result": {
        const { callId, toolId, result } = saying;
        return this.#whole("tool", "tool_result", { callId, toolId, result });
      }
    }
  }

  /** Words that a tool carries to the user at once. */
  deliver(text: string): void | Promise<void> {
    return this.#whole("assistant", "delivery", text);
  }

  #whole(role: TurnMessage["role"], type: TurnMessage["type"], content: unknown): void | Promise<void> {
    this.#open = undefined;
    return this.#tell({ id: this.#nextId(), role, type, content, seq: ++this.#seq }, JSON.stringify(content).length);
  }

  #tell(message: TurnMessage, size: number): void | Promise<void> {
    const event: TurnEvent = { event: "query:message", data: { ...identifiersOf(this.#turn), message } };
    this.produced.add(event);
    return this.#transcript.add(event, size);
  }

  #nextId(): string {
    return `${this.#turn.turnId}-${++this.#messages}`;
  }
}
