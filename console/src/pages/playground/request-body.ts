import { TOOL_ERROR_MARK } from "@portico/plugins/model-proxy/client";
import {
  type AnswerPart,
  type AssistantTurn,
  isEmpty,
  type Protocol,
  type ToolPart,
  type Turn,
  type TurnImage,
  type UserTurn,
} from "./conversation.ts";

export interface ModelRequest {
  readonly protocol: Protocol;
  readonly model: string;
  readonly system: string;
  readonly temperature: number | undefined;
  readonly maxTokens: number | undefined;
  readonly isStream: boolean;
  /** In the shape of the protocol. */
  readonly tools: readonly unknown[];
  readonly turns: readonly Turn[];
  /** Further fields of the body. */
  readonly more: Readonly<Record<string, unknown>>;
  /** Whether the provider accepts thoughts without a signature. */
  readonly takesReasoning: boolean;
}

/** The body of a model call. The names of its fields are those of the protocol. */
export type RequestBody = { readonly model: string; readonly messages: unknown[] } & Readonly<Record<string, unknown>>;

/** The body of the call, in its protocol. Turns without content are left out. */
export function requestBody(request: ModelRequest): RequestBody {
  const { protocol, model, system, temperature, maxTokens, isStream, tools, turns, more, takesReasoning } = request;
  const told = turns.filter((turn) => !isEmpty(turn));
  const isMessages = protocol === "messages";
  const instructions = system.trim() !== "";
  return {
    model,
    ...(maxTokens !== undefined && { [isMessages ? "max_tokens" : "max_completion_tokens"]: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(isStream && { stream: true, ...(!isMessages && { stream_options: { include_usage: true } }) }),
    ...(isMessages && instructions && { system }),
    ...(tools.length > 0 && { tools }),
    ...more,
    messages: isMessages
      ? messagesOf(told)
      : [
          ...(instructions ? [{ role: "system", content: system }] : []),
          ...told.flatMap((turn) => chatMessagesOf(turn, takesReasoning)),
        ],
  };
}

type Block = Readonly<Record<string, unknown>> & { readonly type: string };

interface Message {
  readonly role: "user" | "assistant";
  readonly blocks: Block[];
}

/** Neighbours of one role are one message: the results of tools must be in the message that follows their calls. */
function messagesOf(turns: readonly Turn[]): unknown[] {
  const messages: Message[] = [];
  const add = (role: Message["role"], blocks: readonly Block[]) => {
    const last = messages.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else if (blocks.length > 0) messages.push({ role, blocks: [...blocks] });
  };
  for (const turn of turns) {
    if (turn.role === "user") add("user", userBlocks(turn));
    else {
      add("assistant", turn.parts.flatMap(assistantBlock));
      add("user", toolsOf(turn).map(resultBlock));
    }
  }
  return messages.map(({ role, blocks }) => {
    const [only, ...more] = blocks;
    return { role, content: only?.type === "text" && more.length === 0 ? only["text"] : blocks };
  });
}

function userBlocks({ text, images }: UserTurn): Block[] {
  return [
    ...images.map(({ mediaType, base64 }) => ({
      type: "image",
      source: { type: "base64", media_type: mediaType, data: base64 },
    })),
    ...(text.trim() === "" ? [] : [{ type: "text", text }]),
  ];
}

function assistantBlock(part: AnswerPart): Block[] {
  switch (part.type) {
    case "text":
      return part.text.trim() === "" ? [] : [{ type: "text", text: part.text }];
    case "thinking":
      if (part.data !== undefined) return [{ type: "redacted_thinking", data: part.data }];
      return part.signature === undefined ? [] : [{ type: "thinking", thinking: part.text, signature: part.signature }];
    default:
      return [{ type: "tool_use", id: part.id, name: part.name, input: readArguments(part.arguments) }];
  }
}

function resultBlock({ id, result, isError = false }: ToolPart): Block {
  return { type: "tool_result", tool_use_id: id, content: result, ...(isError && { is_error: true }) };
}

function chatMessagesOf(turn: Turn, takesReasoning: boolean): unknown[] {
  if (turn.role === "user") return [{ role: "user", content: turn.images.length === 0 ? turn.text : chatParts(turn) }];
  const text = turn.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const tools = toolsOf(turn);
  const details = turn.parts.flatMap(reasoningDetail);
  const reasoning = takesReasoning ? unsignedThought(turn) : "";
  const calls = tools.map(({ id, name, arguments: written }) => ({
    ...{ id, type: "function" },
    function: { name, arguments: written === "" ? "{}" : written },
  }));
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
    ...tools.map(({ id, result, isError }) => ({
      role: "tool",
      tool_call_id: id,
      // The protocol has no field for it. The proxy marks errors in the same way.
      content: isError ? `${TOOL_ERROR_MARK} ${result}` : result,
    })),
  ];
}

function chatParts({ text, images }: UserTurn): unknown[] {
  return [
    ...images.map((image) => ({ type: "image_url", image_url: { url: dataUrl(image) } })),
    ...(text.trim() === "" ? [] : [{ type: "text", text }]),
  ];
}

/** The proxy turns it into a signed thought of Messages. Other providers never give a signature. */
function reasoningDetail(part: AnswerPart): unknown[] {
  if (part.type !== "thinking") return [];
  if (part.data !== undefined) return [{ type: "reasoning.encrypted", data: part.data }];
  return part.signature === undefined ? [] : [{ type: "reasoning.text", text: part.text, signature: part.signature }];
}

function unsignedThought({ parts }: AssistantTurn): string {
  return parts
    .map((part) => (part.type === "thinking" && part.data === undefined && part.signature === undefined ? part.text : ""))
    .join("");
}

function toolsOf(turn: AssistantTurn): ToolPart[] {
  return turn.parts.filter((part) => part.type === "tool");
}

function dataUrl({ mediaType, base64 }: TurnImage): string {
  return `data:${mediaType};base64,${base64}`;
}

/** The arguments of a call that was cut are invalid JSON. */
function readArguments(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return {};
  }
}
