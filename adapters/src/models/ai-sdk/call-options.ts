import {
  type ModelQuestion,
  ModelRefusal,
  type QuestionPart,
  type QuestionSource,
  readSignedToolId,
} from "@portico/core/model-protocols";
import { earlierPrompt } from "./earlier-prompt.ts";
import type { CallOptions, LanguageModel, Message, Metadata, SupportedUrls } from "./language-model.ts";
import { readMetadata } from "./metadata-text.ts";

/** Options of a call, and what was left out. */
export interface WrittenCall {
  readonly options: CallOptions;
  readonly dropped: readonly string[];
}

/**
 * The call of a model for a question.
 * @throws ModelRefusal for what the model's interface cannot express.
 */
export async function writeCall(
  question: ModelQuestion,
  model: LanguageModel,
  { signal, providerOptions }: { readonly signal: AbortSignal; readonly providerOptions: Metadata | undefined },
): Promise<WrittenCall> {
  const version = model.specificationVersion;
  const writer = new PromptWriter((await model.supportedUrls) ?? {});
  const prompt = writer.prompt(question);
  const reasoning = reasoningOf(question);
  const hasReasoning = version !== "v2" && version !== "v3";
  if (reasoning !== undefined && !hasReasoning) writer.dropped.add("thinking");
  if (question.toolChoice.isSingle) writer.dropped.add("tool_choice.disable_parallel_tool_use");
  const { maxTokens, temperature, topP, topK, stopSequences, answerSchema, tools, toolChoice, headers } = question;
  const trace = Object.entries(headers).filter(([name]) => name === "traceparent" || name === "tracestate");
  const options: CallOptions = {
    prompt: hasReasoning ? prompt : earlierPrompt(prompt, version),
    maxOutputTokens: maxTokens,
    temperature,
    topP,
    topK,
    ...(stopSequences.length > 0 && { stopSequences }),
    ...(answerSchema && { responseFormat: { type: "json", schema: answerSchema } }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, schema }) => ({ type: "function", name, description, inputSchema: schema })),
      toolChoice:
        toolChoice.type === "tool"
          ? { type: "tool", toolName: toolChoice.name! }
          : { type: toolChoice.type === "any" ? "required" : toolChoice.type },
    }),
    ...(reasoning !== undefined && hasReasoning && { reasoning }),
    ...(providerOptions && { providerOptions }),
    ...(trace.length > 0 && { headers: Object.fromEntries(trace) }),
    abortSignal: signal,
  };
  return { options, dropped: [...writer.dropped] };
}

/** Budgets below these numbers of tokens become low and medium effort, as in converted requests. */
const MEDIUM_FROM = 4_096;
const HIGH_FROM = 16_384;
const EFFORTS: ReadonlySet<unknown> = new Set(["low", "medium", "high", "xhigh", "max"]);

/** Undefined: the model's default. */
function reasoningOf({ body }: ModelQuestion): string | undefined {
  const thinking = body["thinking"] as { readonly type?: unknown; readonly budget_tokens?: unknown } | null | undefined;
  const config = body["output_config"] as { readonly effort?: unknown } | null | undefined;
  if (thinking?.type === "disabled") return "none";
  if (EFFORTS.has(config?.effort)) return config!.effort as string;
  if (thinking?.type !== "enabled") return thinking?.type === "adaptive" ? "high" : undefined;
  const budget = Number(thinking.budget_tokens);
  if (budget < MEDIUM_FROM) return "low";
  return budget < HIGH_FROM ? "medium" : "high";
}

/** Writes the messages of one prompt. */
class PromptWriter {
  readonly dropped: Set<string> = new Set();
  readonly #urls: SupportedUrls;
  /** The tools of the calls so far, by the ids of the calls: results must name their tool. */
  readonly #tools = new Map<string, string>();

  constructor(urls: SupportedUrls) {
    this.#urls = urls;
  }

  prompt({ system, turns }: ModelQuestion): readonly Message[] {
    const messages: Message[] = system === "" ? [] : [{ role: "system", content: system }];
    for (const { role, text, parts } of turns) {
      if (role === "system") messages.push({ role, content: text });
      else if (role === "assistant") push(messages, { role, content: parts.flatMap((part) => this.#ofAssistant(part)) });
      else {
        const results = parts.filter((part) => part.type === "tool-result");
        push(messages, { role: "tool", content: results.map((part) => this.#result(part)) });
        push(messages, { role, content: parts.flatMap((part) => (part.type === "tool-result" ? [] : this.#ofUser(part))) });
      }
    }
    return messages;
  }

  #ofUser(part: QuestionPart): readonly object[] {
    if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
    if (part.type !== "image" && part.type !== "document") throw refused(`a part of type ${part.type} cannot be a user's`);
    return [this.#file(part)];
  }

  #ofAssistant(part: QuestionPart): readonly object[] {
    switch (part.type) {
      case "text":
        return part.text === "" ? [] : [{ type: "text", text: part.text }];
      case "thinking": {
        const metadata = readMetadata(part.signature);
        // Reasoning that another provider signed means nothing to this one.
        if (part.data !== undefined || (part.signature !== undefined && !metadata)) {
          this.dropped.add("messages.content.thinking");
          return [];
        }
        return [{ type: "reasoning", text: part.text, ...(metadata && { providerOptions: metadata }) }];
      }
      case "tool-call": {
        const { id, signature } = readSignedToolId(part.id);
        const metadata = readMetadata(signature);
        this.#tools.set(id, part.name);
        const call = { type: "tool-call", toolCallId: id, toolName: part.name, input: part.arguments };
        return [metadata ? { ...call, providerOptions: metadata } : call];
      }
      default:
        throw refused(`a part of type ${part.type} cannot be an assistant's`);
    }
  }

  #result(part: Extract<QuestionPart, { type: "tool-result" }>): object {
    const { id } = readSignedToolId(part.id);
    const toolName = this.#tools.get(id);
    if (toolName === undefined) throw refused("a tool_result has no tool_use before it");
    const files = part.parts.filter((each) => each.type === "image" || each.type === "document");
    const common = { type: "tool-result", toolCallId: id, toolName };
    // An error is a text in this interface, so its files are lost.
    if (part.isError && files.length > 0) this.dropped.add("messages.content.tool_result.content");
    if (part.isError) return { ...common, output: { type: "error-text", value: part.text } };
    if (files.length === 0) return { ...common, output: { type: "text", value: part.text } };
    const value = part.parts.flatMap((each) => {
      if (each.type === "text") return [{ type: "text", text: each.text }];
      return each.type === "image" || each.type === "document" ? [this.#file(each)] : [];
    });
    return { ...common, output: { type: "content", value } };
  }

  #file(part: Extract<QuestionPart, { type: "image" | "document" }>): object {
    const { source } = part;
    const mediaType = mediaTypeOf(part.type, source);
    const filename = part.type === "document" && part.title !== undefined ? { filename: part.title } : {};
    if (source.type === "text") return { type: "file", mediaType, ...filename, data: { type: "text", text: source.text } };
    if (source.type === "base64") return { type: "file", mediaType, ...filename, data: { type: "data", data: source.data } };
    // The SDK would read other addresses itself. A server must not: the caller could name an address of its network.
    const url = URL.parse(source.url);
    if (!url || !isSupported(this.#urls, mediaType, source.url))
      throw refused(`this provider reads no ${part.type}s from addresses: send their bytes`);
    return { type: "file", mediaType, ...filename, data: { type: "url", url } };
  }
}

function mediaTypeOf(kind: "image" | "document", source: QuestionSource): string {
  if (source.type === "base64") return source.mediaType;
  if (source.type === "text") return "text/plain";
  return kind === "image" ? "image/*" : "application/pdf";
}

/** Maximum characters of an address. */
const ADDRESS_LENGTH = 2_048;

/** Patterns are of a type, of a class such as `image/*`, or of all types. Addresses are compared in lower case, as the interface says. */
function isSupported(urls: SupportedUrls, mediaType: string, url: string): boolean {
  const [kind = ""] = mediaType.split("/");
  const patterns = [mediaType, `${kind}/*`, "*", "*/*"].flatMap((type) => urls[type] ?? []);
  // The patterns are the package's own: an address that is short bounds their time. `search` keeps no state of a pattern.
  return url.length <= ADDRESS_LENGTH && patterns.some((pattern) => url.toLowerCase().search(pattern) >= 0);
}

/** Messages without content are left out. */
function push(messages: Message[], message: Message): void {
  if (message.content.length > 0) messages.push(message);
}

function refused(reason: string): ModelRefusal {
  return new ModelRefusal("invalid-request", `messages: ${reason}`);
}
