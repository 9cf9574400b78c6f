import { writeCompletionChunks } from "./echo-chat.ts";
import { writeMessageEvents } from "./echo-messages.ts";
import { writeResponseEvents } from "./echo-responses.ts";
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

/** The same as `messagesEvents` in Responses, without the events that say nothing new, which some servers leave out. */
export function responsesEvents(text: string): string[] {
  return writeResponseEvents(turnOf(text), "script").filter(
    (event) => !/"type":"response\.(?:in_progress|content_part)/.test(event),
  );
}

/** The events of a good stream by the protocol of the upstream. */
export const STREAM_EVENTS = { messages: messagesEvents, "chat-completions": chatEvents, responses: responsesEvents } as const;

function turnOf(text: string): EchoTurn {
  return { model: "echo-large", text, calls: [], finish: "end", inputTokens: 7, outputTokens: 11 };
}
