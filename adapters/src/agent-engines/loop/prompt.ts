import type { ports } from "@portico/core";
import type { FunctionTool, Prompt, PromptMessage } from "./language-model.ts";

type Content<R extends PromptMessage["role"]> = Exclude<Extract<PromptMessage, { role: R }>["content"], string>[number];

/** What a model is asked, in the AI SDK's words. */
export function toPrompt(
  instructions: string | undefined,
  messages: readonly ports.ConversationMessage[],
  protocol: ports.ModelProtocol,
): Prompt {
  const system: Prompt = instructions ? [{ role: "system", content: instructions }] : [];
  return [...system, ...messages.map((message) => toMessage(message, protocol))];
}

export function toFunctionTool({ name, description, inputSchema }: ports.ToolDefinition): FunctionTool {
  return { type: "function", name, description, inputSchema };
}

function toMessage({ role, parts }: ports.ConversationMessage, protocol: ports.ModelProtocol): PromptMessage {
  if (role === "tool") return { role, content: parts.flatMap((part): Content<"tool">[] => toResult(part, protocol)) };
  if (role === "user") return { role, content: parts.flatMap((part) => toSaid(part, protocol)) };
  return {
    role,
    content: parts.flatMap((part): Content<"assistant">[] => {
      if (part.type === "text") return part.text === "" ? [] : [{ type: "text" as const, text: part.text }];
      if (part.type === "tool_call") {
        return [{ type: "tool-call" as const, toolCallId: part.callId, toolName: part.name, input: part.arguments ?? {} }];
      }
      return part.type === "thinking" ? toReasoning(part) : [];
    }),
  };
}

/** What the protocols' usual services take; anything else would be refused, and with it the whole conversation. */
const SHOWN: Readonly<Record<ports.ModelProtocol, RegExp>> = {
  messages: /^(?:image\/(?:jpeg|png|gif|webp)|application\/pdf)$/,
  "chat-completions": /^(?:image\/(?:jpeg|png|gif|webp)|application\/pdf|audio\/(?:wav|mp3|mpeg))$/,
};

function toSaid(part: ports.MessagePart, protocol: ports.ModelProtocol): Content<"user">[] {
  if (part.type === "text") return [{ type: "text" as const, text: part.text }];
  if (part.type !== "media") return [];
  const { mediaType, name, data } = part;
  if (!SHOWN[protocol].test(mediaType))
    return [{ type: "text" as const, text: `[a file, ${mediaType}, that cannot be shown here: ${JSON.stringify(name ?? "")}]` }];
  return [
    { type: "file" as const, mediaType, data: { type: "data" as const, data }, ...(name !== undefined && { filename: name }) },
  ];
}

/** Thinking goes back to the model that signed it; what nobody signed is of no use to anybody. */
function toReasoning({ text, signature, redacted }: Extract<ports.MessagePart, { type: "thinking" }>) {
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
  // Chat Completions has only text here: the model is told what it cannot see.
  const value = content
    .map((part) => (part.type === "text" ? part.text : `[an image, ${part.mimeType}, that cannot be shown here]`))
    .join("\n");
  return isError ? { type: "error-text" as const, value } : { type: "text" as const, value };
}
