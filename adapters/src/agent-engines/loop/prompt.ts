import type { ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import { type JsonObject, signedToolId, toolIdForMessages } from "@portico/core/model-protocols";
import type { RequestMessage, RequestTool } from "../../models/call/model-request.ts";

/** The model that gets the prompt. Its own thinking is sent back to it. */
export interface AskedModel {
  readonly protocol: ports.ModelProtocol;
  /** The protocol of its signatures and its sealed thinking. */
  readonly state: string;
  /** Provider configuration id. */
  readonly provider: string;
  readonly model: string;
  /** Whether a provider of Chat Completions accepts `reasoning_content`. */
  readonly takesReasoning: boolean;
}

/** Earlier turns, and the messages of this turn, as the messages of a request. */
export function toMessages(
  said: Readonly<Record<"history" | "now", readonly ports.ConversationMessage[]>>,
  asked: AskedModel,
): RequestMessage[] {
  const messages = [
    ...said.history.map((message) => toMessage(message, asked, false)),
    ...said.now.map((message) => toMessage(message, asked, true)),
  ];
  // Thinking that is left out may have been the only content of a message, and providers refuse an empty message.
  const joined: RequestMessage[] = [];
  for (const message of messages.filter(({ content }) => content.length > 0)) {
    const last = joined.at(-1);
    // Some servers of Messages refuse neighbours of one role.
    if (asked.protocol === "messages" && last?.role === message.role)
      joined[joined.length - 1] = { role: last.role, content: [...last.content, ...message.content] };
    else joined.push(message);
  }
  return joined;
}

export function toRequestTool({ name, description, inputSchema }: ports.ToolDefinition): RequestTool {
  return { name, description, input_schema: inputSchema as JsonObject };
}

function toMessage({ role, parts }: ports.ConversationMessage, asked: AskedModel, isNow: boolean): RequestMessage {
  if (role === "tool") return { role: "user", content: parts.flatMap(toResult) };
  if (role === "user") return { role, content: parts.flatMap((part) => toSaid(part, asked.protocol)) };
  return {
    role,
    content: parts.flatMap((part): JsonObject[] => {
      if (part.type === "text") return part.text.trim() === "" ? [] : [{ type: "text", text: part.text }];
      if (part.type === "tool_call") {
        const input = isRecord(part.arguments) ? (part.arguments as JsonObject) : {};
        return [
          {
            type: "tool_use",
            id: signedToolId(toolIdForMessages(part.callId), signatureOf(part, asked)),
            name: part.name,
            input,
          },
        ];
      }
      return part.type === "thinking" ? toThinking(part, asked, isNow) : [];
    }),
  };
}

/** A signature is sent back to the model that made it. */
function signatureOf(part: Extract<ports.MessagePart, { type: "tool_call" }>, asked: AskedModel): string | undefined {
  const { provider, model, protocol } = part;
  return provider === asked.provider && model === asked.model && protocol === asked.state ? part.signature : undefined;
}

const SUMMARY_HEAD = "[The conversation has become too long to be shown whole. You wrote this summary of its earlier part.]";

const IMAGE = /^image\//;
const PDF = "application/pdf";
/** Messages has no audio. */
const AUDIO = /^audio\/(?:wav|mp3|mpeg)$/;

function toSaid(part: ports.MessagePart, protocol: ports.ModelProtocol): JsonObject[] {
  if (part.type === "text") return [{ type: "text", text: part.text }];
  if (part.type === "summary") return [{ type: "text", text: `${SUMMARY_HEAD}\n\n${part.text}` }];
  if (part.type !== "media") return [];
  const { mediaType, name, data } = part;
  const source = { type: "base64", media_type: mediaType, data };
  // Whether the bytes of an image fit, the writing of the request decides.
  if (IMAGE.test(mediaType)) return [{ type: "image", source }];
  if (mediaType === PDF) return [{ type: "document", source, ...(name !== undefined && { title: name }) }];
  if (AUDIO.test(mediaType) && protocol === "chat-completions") return [{ type: "audio", source }];
  return [{ type: "text", text: `[a file, ${mediaType}, that cannot be shown here: ${JSON.stringify(name ?? "")}]` }];
}

/**
 * Thinking is sent back to the model that made it. Messages providers accept thinking that they signed. In Chat Completions, models need
 * thinking without a signature again only within a turn, between a tool's call and its result.
 */
function toThinking(part: Extract<ports.MessagePart, { type: "thinking" }>, asked: AskedModel, isNow: boolean): JsonObject[] {
  const { text, signature, redacted, provider = asked.provider, model = asked.model, protocol = asked.state } = part;
  if (provider !== asked.provider || model !== asked.model || protocol !== asked.state) return [];
  if (asked.protocol === "chat-completions" && !asked.takesReasoning) return [];
  if (redacted !== undefined) return [{ type: "redacted_thinking", data: redacted }];
  if (signature !== undefined) return [{ type: "thinking", thinking: text, signature }];
  return asked.protocol === "chat-completions" && isNow && text !== "" ? [{ type: "thinking", thinking: text }] : [];
}

function toResult(part: ports.MessagePart): JsonObject[] {
  if (part.type !== "tool_result") return [];
  const { callId, result } = part;
  const content = result.content.map((each): JsonObject => {
    if (each.type === "text") return { type: "text", text: each.text };
    // A failed result of Messages has only text.
    if (result.isError) return { type: "text", text: `[an image, ${each.mimeType}, that cannot be shown here]` };
    return { type: "image", source: { type: "base64", media_type: each.mimeType, data: each.data } };
  });
  return [
    {
      type: "tool_result",
      tool_use_id: toolIdForMessages(callId),
      content,
      ...(result.isError && { is_error: true }),
    },
  ];
}
