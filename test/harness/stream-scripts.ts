import { writeCompletionChunks } from "./echo-chat.ts";
import { writeMessageEvents } from "./echo-messages.ts";
import type { EchoTurn } from "./echo-turn.ts";

/** The events of a good Messages stream that says `text`, word by word, perhaps after some thinking: for scripts that break it somewhere. */
export function messagesEvents(text: string, thinking?: string): string[] {
  return writeMessageEvents({ ...turnOf(text), ...(thinking !== undefined && { thinking }) }, "msg_script");
}

/** The events of a good Messages stream that calls a tool. */
export function toolEvents(name: string, input: unknown): string[] {
  return writeMessageEvents({ ...turnOf(""), calls: [{ id: "toolu_script", name, input }], finish: "tool" }, "msg_script");
}

/** The same as `messagesEvents` in Chat Completions; the last one is the end marker. */
export function chatEvents(text: string, includeUsage = false): string[] {
  return writeCompletionChunks(turnOf(text), "chatcmpl-script", includeUsage);
}

function turnOf(text: string): EchoTurn {
  return { model: "echo-large", text, calls: [], finish: "end", inputTokens: 7, outputTokens: 11 };
}
