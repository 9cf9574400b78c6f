import { AnswerToolIds } from "./answer/answer-reader.ts";
import { type ContentBlock, ContentBlocks } from "./answer/content-blocks.ts";
import { messagesStopReason } from "./answer/finish-reason.ts";
import { mergeUsage, messagesDeltaUsage, messagesUsage } from "./answer/usage.ts";
import { streamErrorEvent } from "./errors.ts";
import type { ModelEvent, StreamWriter, Usage } from "./model-events.ts";
import { signedToolId, toolIdForMessages } from "./tool-ids.ts";

const PING = 'event: ping\ndata: {"type": "ping"}\n\n';

/**
 * Writes a Messages event stream. The first text contains `message_start` with the usage that is known at that time. The totals follow in
 * `message_delta`. The protocol requires content blocks one after another, so content that is interleaved with an unfinished tool call waits
 * until the call is complete.
 *
 * @param options `id` and `model` of the message. They replace the upstream's values.
 */
export function writeMessagesStream(options: { id: string; model: string }): StreamWriter {
  const blocks = new MessagesBlocks(options.id);
  let usage: Usage | undefined;
  let started = false;
  let over = false;

  function start(): string {
    started = true;
    const message = {
      id: options.id,
      type: "message",
      role: "assistant",
      content: [],
      model: options.model,
      stop_reason: null,
      stop_sequence: null,
      usage: messagesUsage(usage),
    };
    return messagesEvent("message_start", `"message":${JSON.stringify(message)}`);
  }

  function write(each: ModelEvent): string {
    switch (each.type) {
      case "start":
        usage = mergeUsage(usage, each.usage);
        return started ? "" : start();
      case "usage":
        usage = mergeUsage(usage, each.usage);
        return "";
      case "error":
        over = true;
        return streamErrorEvent("messages", each.error);
      case "finish": {
        over = true;
        const delta = { stop_reason: messagesStopReason(each.reason), stop_sequence: each.stopSequence ?? null };
        const totals = JSON.stringify(messagesDeltaUsage(usage));
        const end =
          messagesEvent("message_delta", `"delta":${JSON.stringify(delta)},"usage":${totals}`) +
          messagesEvent("message_stop", "");
        return (started ? "" : start()) + blocks.close() + end;
      }
      default:
        return (started ? "" : start()) + blocks.write(each);
    }
  }

  return {
    keepAlive: PING,
    write(events) {
      let text = "";
      for (const each of events) {
        if (over) break;
        text += write(each);
      }
      return text;
    },
  };
}

/** The beginning of a delta per kind of block, up to the JSON string. */
const DELTAS: Readonly<Record<ContentBlock["kind"], string>> = {
  text: '"delta":{"type":"text_delta","text":',
  refusal: '"delta":{"type":"text_delta","text":',
  thinking: '"delta":{"type":"thinking_delta","thinking":',
  tool: '"delta":{"type":"input_json_delta","partial_json":',
  // Never written, because the start of the block contains the data.
  "redacted-thinking": "",
};

/** The text of one Messages stream event; `fields` is JSON without its outer braces. */
export function messagesEvent(type: string, fields: string): string {
  return `event: ${type}\ndata: {"type":"${type}"${fields === "" ? "" : `,${fields}`}}\n\n`;
}

/** Writes the content of a Messages stream, one block at a time. Blocks that begin during an unfinished tool call wait for its end. */
export class MessagesBlocks {
  readonly #ids: AnswerToolIds;
  readonly #blocks = new ContentBlocks();
  /** The index of the open or next block, in the list and in the stream. */
  #index = 0;
  #isOpen = false;
  /** The beginning of a delta of the open block. */
  #delta = "";

  constructor(answerId: string) {
    this.#ids = new AnswerToolIds(answerId);
  }

  /** Takes one event of the content and returns the text that can be written now. */
  write(event: ModelEvent): string {
    return this.#blocks.add(event) === undefined ? "" : this.#flush();
  }

  /** Ends every block and returns the text of the waiting blocks. */
  close(): string {
    for (let at = this.#index; at < this.#blocks.list.length; at += 1) (this.#blocks.list[at] as ContentBlock).ended = true;
    return this.#flush();
  }

  #flush(): string {
    const { list } = this.#blocks;
    let text = "";
    for (let block = list[this.#index]; block !== undefined; block = list[this.#index]) {
      if (!this.#isOpen) text += this.#open(block);
      if (block.text !== "" && block.kind !== "redacted-thinking") {
        text += `${this.#delta}${JSON.stringify(block.text)}}}\n\n`;
        block.text = "";
      }
      const superseded = block.kind !== "tool" && this.#index < list.length - 1;
      if (!block.ended && !superseded) break;
      text += this.#close(block);
    }
    return text;
  }

  #open(block: ContentBlock): string {
    this.#isOpen = true;
    this.#delta = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},${DELTAS[block.kind]}`;
    const start = JSON.stringify(this.#start(block));
    return messagesEvent("content_block_start", `"index":${this.#index},"content_block":${start}`);
  }

  #start(block: ContentBlock): object {
    switch (block.kind) {
      case "thinking":
        return { type: "thinking", thinking: "", signature: "" };
      case "redacted-thinking":
        return { type: "redacted_thinking", data: block.text };
      case "tool": {
        const id = signedToolId(toolIdForMessages(this.#ids.next(block.call, block.id)), block.callSignature);
        return { type: "tool_use", id, name: block.name, input: {} };
      }
      default:
        return { type: "text", text: "" };
    }
  }

  #close(block: ContentBlock): string {
    // A signature is always the last delta of its block.
    const delta = `"index":${this.#index},"delta":{"type":"signature_delta","signature":${JSON.stringify(block.signature)}}`;
    const signature = block.signature === "" ? "" : messagesEvent("content_block_delta", delta);
    const stop = messagesEvent("content_block_stop", `"index":${this.#index}`);
    this.#index += 1;
    this.#isOpen = false;
    return signature + stop;
  }
}
