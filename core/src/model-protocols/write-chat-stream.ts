import { AnswerToolIds } from "./answer/answer-reader.ts";
import { chatFinishReason } from "./answer/finish-reason.ts";
import { chatUsage, mergeUsage } from "./answer/usage.ts";
import { streamErrorEvent } from "./errors.ts";
import type { ModelEvent, StreamWriter, Usage } from "./model-events.ts";
import { toolIdForChat } from "./tool-ids.ts";

const COMMENT = ": keep-alive\n\n";

export interface ChatStreamOptions {
  readonly id: string;
  readonly model: string;
  readonly created: number;
  readonly includeUsage: boolean;
  readonly isLegacy?: boolean;
}

interface Call {
  readonly index: number;
  hasArguments: boolean;
  ended: boolean;
}

/**
 * Writes a Chat Completions event stream. Thinking is written to `reasoning_content`, and signatures and redacted data to
 * `reasoning_details`, because clients of several vendors read these fields.
 *
 * @param options `created` in seconds; `includeUsage` from the caller's `stream_options`. The chunk with the usage is left out if the
 *   upstream reported no usage (4.1: missing usage is not zero consumption). `isLegacy`: the caller declared `functions`, and gets its
 *   call as `function_call`.
 */
export function writeChatStream(options: ChatStreamOptions): StreamWriter {
  const head = `data: {"id":${JSON.stringify(options.id)},"object":"chat.completion.chunk","created":${options.created},`;
  const chunk = `${head}"model":${JSON.stringify(options.model)},"choices":[`;
  const nullUsage = options.includeUsage ? ',"usage":null' : "";
  const delta = `${chunk}{"index":0,"delta":{`;
  const deltaEnd = `},"finish_reason":null}]${nullUsage}}\n\n`;

  const ids = new AnswerToolIds(options.id);
  const calls = new Map<number, Call>();
  let usage: Usage | undefined;
  let refused = false;
  /** The thinking since the last block of another kind. */
  let thinking = "";
  let started = false;
  let over = false;

  function write(event: ModelEvent): string {
    switch (event.type) {
      case "start":
      case "usage":
        usage = mergeUsage(usage, event.usage);
        return "";
      case "text":
        if (event.text === "") return "";
        thinking = "";
        return `${delta}"content":${JSON.stringify(event.text)}${deltaEnd}`;
      case "refusal":
        if (event.text === "") return "";
        thinking = "";
        refused = true;
        return `${delta}"refusal":${JSON.stringify(event.text)}${deltaEnd}`;
      case "thinking":
        thinking += event.text;
        return event.text === "" ? "" : `${delta}"reasoning_content":${JSON.stringify(event.text)}${deltaEnd}`;
      case "thinking-signature":
        return sign(event.signature);
      case "redacted-thinking":
        thinking = "";
        return detail({ type: "reasoning.encrypted", data: event.data });
      case "tool-start":
        return calls.has(event.call) ? "" : begin(event.call, event.id, event.name);
      case "tool-arguments":
        return piece(calls.get(event.call), event.json);
      case "tool-end":
        return end(calls.get(event.call));
      case "finish":
        return finish(chatFinishReason(event.reason, refused, options.isLegacy));
      case "error":
        over = true;
        return streamErrorEvent("chat-completions", event.error);
    }
  }

  /** The provider checks a signature against its text. Both are written together, so that a caller can return them unchanged. */
  function sign(signature: string): string {
    const text = thinking;
    thinking = "";
    return detail({ type: "reasoning.text", text, signature });
  }

  function detail(entry: object): string {
    return `${delta}"reasoning_details":[${JSON.stringify(entry)}]${deltaEnd}`;
  }

  function begin(call: number, id: string, name: string): string {
    thinking = "";
    const index = calls.size;
    // `function_call` has no place for a second call, so it is ignored.
    calls.set(call, { index, hasArguments: false, ended: options.isLegacy === true && index > 0 });
    if (options.isLegacy) return index > 0 ? "" : `${delta}"function_call":${JSON.stringify({ name, arguments: "" })}${deltaEnd}`;
    const start = {
      index,
      id: toolIdForChat(ids.next(call, id)),
      type: "function",
      function: { name, arguments: "" },
    };
    return `${delta}"tool_calls":[${JSON.stringify(start)}]${deltaEnd}`;
  }

  function piece(call: Call | undefined, json: string): string {
    if (call === undefined || call.ended || json === "") return "";
    call.hasArguments = true;
    if (options.isLegacy) return `${delta}"function_call":{"arguments":${JSON.stringify(json)}}${deltaEnd}`;
    return `${delta}"tool_calls":[{"index":${call.index},"function":{"arguments":${JSON.stringify(json)}}}]${deltaEnd}`;
  }

  /** Messages sends no arguments for an empty object. Callers of Chat Completions parse the arguments, so `{}` is written. */
  function end(call: Call | undefined): string {
    if (call === undefined || call.ended) return "";
    const text = call.hasArguments ? "" : piece(call, "{}");
    call.ended = true;
    return text;
  }

  function finish(reason: string): string {
    over = true;
    let text = "";
    for (const call of calls.values()) text += end(call);
    text += `${delta}},"finish_reason":${JSON.stringify(reason)}}]${nullUsage}}\n\n`;
    const reported = options.includeUsage ? chatUsage(usage) : undefined;
    if (reported !== undefined) text += `${chunk}],"usage":${JSON.stringify(reported)}}\n\n`;
    return `${text}data: [DONE]\n\n`;
  }

  return {
    keepAlive: COMMENT,
    write(events) {
      let text = "";
      for (const event of events) {
        if (over) break;
        if (!started && (event.type === "start" || event.type === "finish" || isContent(event))) {
          started = true;
          text += `${delta}"role":"assistant","content":""${deltaEnd}`;
        }
        text += write(event);
      }
      return text;
    },
  };
}

function isContent(event: ModelEvent): boolean {
  return event.type !== "usage" && event.type !== "error";
}
