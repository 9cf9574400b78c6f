import { messagesStopReason } from "./answer/finish-reason.ts";
import { MessagesBlocks, messagesEvent } from "./answer/messages-blocks.ts";
import { mergeUsage, messagesDeltaUsage, messagesUsage } from "./answer/usage.ts";
import { streamErrorEvent } from "./errors.ts";
import type { ModelEvent, Usage } from "./model-events.ts";
import type { StreamWriter } from "./stream.ts";

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
