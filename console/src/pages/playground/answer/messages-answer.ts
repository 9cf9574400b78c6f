import { type ArrivingAnswer, addText } from "./arriving-answer.ts";

interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cache_read_input_tokens?: number | null;
  readonly cache_creation_input_tokens?: number | null;
}

interface Block {
  readonly type?: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly data?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
}

interface Message {
  readonly content?: readonly Block[];
  readonly stop_reason?: string | null;
  readonly usage?: Usage;
}

interface MessagesEvent {
  readonly type?: string;
  readonly message?: Message;
  readonly content_block?: Block;
  readonly delta?: Block & { readonly partial_json?: string; readonly stop_reason?: string | null };
  readonly usage?: Usage;
}

/** Adds a whole message. */
export function readMessage({ content = [], stop_reason: stopReason, usage }: Message, into: ArrivingAnswer): void {
  for (const block of content) addBlock(block, into, JSON.stringify(block.input ?? {}));
  into.stopReason = stopReason ?? undefined;
  addUsage(usage, into);
}

/** Adds an event of a stream. The blocks of a message come one after the other. */
export function readMessagesEvent(
  { type, message, content_block: block, delta, usage }: MessagesEvent,
  into: ArrivingAnswer,
): void {
  addUsage(message?.usage, into);
  addUsage(usage, into);
  if (type === "content_block_start" && block) addBlock(block, into, "");
  if (delta?.stop_reason) into.stopReason = delta.stop_reason;
  const last = into.parts.at(-1);
  if (delta?.type === "text_delta") addText(into, "text", delta.text);
  else if (delta?.type === "thinking_delta") addText(into, "thinking", delta.thinking);
  else if (delta?.type === "signature_delta" && last?.type === "thinking") last.signature = delta.signature ?? "";
  else if (delta?.type === "input_json_delta" && last?.type === "tool") last.arguments += delta.partial_json ?? "";
}

/** Blocks of other kinds are not shown. */
function addBlock(
  { type, text, thinking, signature, data, id = "", name = "" }: Block,
  into: ArrivingAnswer,
  input: string,
): void {
  if (type === "text") into.parts.push({ type, text: text ?? "" });
  else if (type === "thinking") into.parts.push({ type, text: thinking ?? "", ...(signature && { signature }) });
  else if (type === "redacted_thinking") into.parts.push({ type: "thinking", text: "", data: data ?? "" });
  else if (type === "tool_use") into.parts.push({ type: "tool", id, name, arguments: input, result: "" });
}

/** Counts are cumulative: later ones replace earlier ones. `input_tokens` is without the tokens of the cache. */
function addUsage(usage: Usage | undefined, into: ArrivingAnswer): void {
  if (!usage) return;
  const { cachedInput: readBefore, cacheWrite: writtenBefore, input: before, output: outputBefore } = into.usage;
  const cachedInput = usage.cache_read_input_tokens ?? readBefore;
  const cacheWrite = usage.cache_creation_input_tokens ?? writtenBefore;
  const fresh = usage.input_tokens ?? (before === undefined ? undefined : before - (readBefore ?? 0) - (writtenBefore ?? 0));
  const output = usage.output_tokens ?? outputBefore;
  into.usage = {
    ...(fresh !== undefined && { input: fresh + (cachedInput ?? 0) + (cacheWrite ?? 0) }),
    ...(cachedInput !== undefined && { cachedInput }),
    ...(cacheWrite !== undefined && { cacheWrite }),
    ...(output !== undefined && { output }),
  };
}
