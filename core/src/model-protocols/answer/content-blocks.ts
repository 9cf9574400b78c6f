import type { ModelEvent } from "../model-events.ts";

/** One piece of an answer's content, in the order in which the pieces began. */
export interface ContentBlock {
  readonly kind: "text" | "refusal" | "thinking" | "redacted-thinking" | "tool";
  /** Text, arguments or redacted data so far. Code that has forwarded it may empty it. */
  text: string;
  signature: string;
  /** The block receives no further content. Text and thinking also end when another block begins. */
  ended: boolean;
  /** For tool calls: the number, the upstream's id ("" if it gave no id) and the name. */
  readonly call: number;
  readonly id: string;
  readonly name: string;
  /** For tool calls: what the provider needs back with the call. */
  readonly callSignature?: string | undefined;
}

const NO_CALL = { call: -1, id: "", name: "" } as const;

/** Collects events into content blocks. Each delta of interleaved tool calls is added to the block of its call. */
export class ContentBlocks {
  readonly list: ContentBlock[] = [];
  readonly #calls = new Map<number, ContentBlock>();

  /**
   * Takes one event and returns the block that it changed. Returns undefined if the event is not content or belongs to no block.
   */
  add(event: ModelEvent): ContentBlock | undefined {
    switch (event.type) {
      case "text":
      case "refusal":
      case "thinking":
        return event.text === "" ? undefined : this.#append(event.type, event.text);
      case "thinking-signature":
        return this.#sign(event.signature);
      case "redacted-thinking":
        return this.#begin({ kind: "redacted-thinking", text: event.data, ended: true, ...NO_CALL });
      case "tool-start": {
        if (this.#calls.has(event.call)) return undefined;
        const block = this.#begin({
          kind: "tool",
          text: "",
          ended: false,
          call: event.call,
          id: event.id,
          name: event.name,
          callSignature: event.signature,
        });
        this.#calls.set(event.call, block);
        return block;
      }
      case "tool-arguments": {
        const block = this.#calls.get(event.call);
        if (block === undefined || block.ended) return undefined;
        block.text += event.json;
        return block;
      }
      case "tool-end": {
        const block = this.#calls.get(event.call);
        if (block !== undefined) block.ended = true;
        return block;
      }
    }
    return undefined;
  }

  #append(kind: "text" | "refusal" | "thinking", text: string): ContentBlock {
    const last = this.list.at(-1);
    const block = last?.kind === kind && !last.ended ? last : this.#begin({ kind, text: "", ended: false, ...NO_CALL });
    block.text += text;
    return block;
  }

  /** A signature without preceding thinking becomes its own block, because the upstream may omit the text on purpose. */
  #sign(signature: string): ContentBlock {
    const last = this.list.at(-1);
    const open = last?.kind === "thinking" && !last.ended;
    const block = open ? last : this.#begin({ kind: "thinking", text: "", ended: false, ...NO_CALL });
    block.signature = signature;
    block.ended = true;
    return block;
  }

  #begin(block: Omit<ContentBlock, "signature">): ContentBlock {
    const begun: ContentBlock = { signature: "", ...block };
    this.list.push(begun);
    return begun;
  }
}
