import type { ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import { CHAT_PROVIDER } from "./open-language-model.ts";
import type { FunctionTool, Prompt, PromptMessage } from "./language-model.ts";

type Content<R extends PromptMessage["role"]> = Exclude<Extract<PromptMessage, { role: R }>["content"], string>[number];

/** The model that gets the prompt. Its own thinking is sent back to it. */
export interface AskedModel {
  readonly protocol: ports.ModelProtocol;
  /** Provider configuration id. */
  readonly provider: string;
  readonly model: string;
  /** Whether a provider of Chat Completions accepts `reasoning_content`. */
  readonly takesReasoning: boolean;
}

/** The prompt of a model call, in the AI SDK's types: earlier turns, and the messages of this turn. */
export function toPrompt(
  instructions: string | undefined,
  said: Readonly<Record<"history" | "now", readonly ports.ConversationMessage[]>>,
  asked: AskedModel,
): Prompt {
  const system: Prompt = instructions ? [{ role: "system", content: instructions }] : [];
  const messages = [
    ...said.history.map((message) => toMessage(message, asked, false)),
    ...said.now.map((message) => toMessage(message, asked, true)),
  ];
  // Thinking that is left out may have been the only content of a message, and providers refuse an empty message.
  return [...system, ...messages.filter(({ content }) => content.length > 0)];
}

export function toFunctionTool({ name, description, inputSchema }: ports.ToolDefinition): FunctionTool {
  return { type: "function", name, description, inputSchema };
}

function toMessage({ role, parts }: ports.ConversationMessage, asked: AskedModel, isNow: boolean): PromptMessage {
  const { protocol } = asked;
  if (role === "tool") return { role, content: parts.flatMap((part): Content<"tool">[] => toResult(part, protocol)) };
  if (role === "user") return { role, content: parts.flatMap((part) => toSaid(part, protocol)) };
  return {
    role,
    content: parts.flatMap((part): Content<"assistant">[] => {
      if (part.type === "text") return part.text.trim() === "" ? [] : [{ type: "text" as const, text: part.text }];
      if (part.type === "tool_call") {
        return [
          {
            type: "tool-call" as const,
            toolCallId: part.callId,
            toolName: part.name,
            input: isRecord(part.arguments) ? part.arguments : {},
            ...signatureOf(part, asked),
          },
        ];
      }
      return part.type === "thinking" ? toReasoning(part, asked, isNow) : [];
    }),
  };
}

/** A signature is sent back to the model that made it. */
function signatureOf({ signature, provider, model }: Extract<ports.MessagePart, { type: "tool_call" }>, asked: AskedModel) {
  if (signature === undefined || provider !== asked.provider || model !== asked.model) return {};
  return { providerOptions: { [CHAT_PROVIDER]: { thoughtSignature: signature } } };
}

const SUMMARY_HEAD = "[The conversation has become too long to be shown whole. You wrote this summary of its earlier part.]";

/**
 * The media types that the usual services of each protocol accept. Any other type would make them refuse the whole conversation.
 */
const SHOWN: Readonly<Record<ports.ModelProtocol, RegExp>> = {
  messages: /^(?:image\/(?:jpeg|png|gif|webp)|application\/pdf)$/,
  "chat-completions": /^(?:image\/(?:jpeg|png|gif|webp)|application\/pdf|audio\/(?:wav|mp3|mpeg))$/,
};

function toSaid(part: ports.MessagePart, protocol: ports.ModelProtocol): Content<"user">[] {
  if (part.type === "text") return [{ type: "text" as const, text: part.text }];
  if (part.type === "summary") return [{ type: "text" as const, text: `${SUMMARY_HEAD}\n\n${part.text}` }];
  if (part.type !== "media") return [];
  const { mediaType, name, data } = part;
  if (!SHOWN[protocol].test(mediaType))
    return [{ type: "text" as const, text: `[a file, ${mediaType}, that cannot be shown here: ${JSON.stringify(name ?? "")}]` }];
  return [
    { type: "file" as const, mediaType, data: { type: "data" as const, data }, ...(name !== undefined && { filename: name }) },
  ];
}

/**
 * Thinking is sent back to the model that made it. Messages providers accept thinking that they signed. Chat Completions has no
 * signatures: models need their thinking again only within a turn, between a tool's call and its result.
 */
function toReasoning(part: Extract<ports.MessagePart, { type: "thinking" }>, asked: AskedModel, isNow: boolean) {
  const { text, signature, redacted, provider = asked.provider, model = asked.model } = part;
  if (provider !== asked.provider || model !== asked.model) return [];
  if (asked.protocol === "chat-completions")
    return isNow && asked.takesReasoning && text !== "" ? [{ type: "reasoning" as const, text }] : [];
  if (redacted !== undefined)
    return [{ type: "reasoning" as const, text: "", providerOptions: { anthropic: { redactedData: redacted } } }];
  if (signature === undefined) return [];
  return [{ type: "reasoning" as const, text, providerOptions: { anthropic: { signature } } }];
}

function toResult(part: ports.MessagePart, protocol: ports.ModelProtocol) {
  if (part.type !== "tool_result") return [];
  const { callId, name, result } = part;
  return [{ type: "tool-result" as const, toolCallId: callId, toolName: name, output: toOutput(result, protocol) }];
}

function toOutput({ content, isError }: ports.ToolResult, protocol: ports.ModelProtocol) {
  const hasImages = content.some(({ type }) => type === "image");
  if (hasImages && !isError && protocol === "messages") {
    const value = content.map((part) =>
      part.type === "text"
        ? { type: "text" as const, text: part.text }
        : { type: "file" as const, mediaType: part.mimeType, data: { type: "data" as const, data: part.data } },
    );
    return { type: "content" as const, value };
  }
  // Chat Completions allows only text here: the model is told that it cannot see the media.
  const value = content
    .map((part) => (part.type === "text" ? part.text : `[an image, ${part.mimeType}, that cannot be shown here]`))
    .join("\n");
  return isError ? { type: "error-text" as const, value } : { type: "text" as const, value };
}
