import type { ToolPart } from "../conversation.ts";
import { type ArrivingAnswer, addText } from "./arriving-answer.ts";

interface Detail {
  readonly type?: string;
  readonly text?: string | null;
  readonly signature?: string | null;
  readonly data?: string | null;
}

interface Call {
  readonly index?: number;
  readonly id?: string | null;
  readonly function?: { readonly name?: string | null; readonly arguments?: string | null };
}

/** Of a whole message, or of a part of it. Vendors name the reasoning differently. */
interface Said {
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
  readonly reasoning_details?: readonly Detail[] | null;
  readonly tool_calls?: readonly Call[] | null;
}

interface Usage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number; readonly cache_write_tokens?: number } | null;
}

interface Completion {
  readonly choices?: readonly {
    readonly message?: Said;
    readonly delta?: Said;
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: Usage | null;
}

/** Adds a whole completion. */
export function readCompletion({ choices = [], usage }: Completion, into: ArrivingAnswer): void {
  const { message, finish_reason: reason } = choices[0] ?? {};
  if (message) add(message, into);
  into.stopReason = reason ?? undefined;
  addUsage(usage, into);
}

/** Adds a chunk of a stream. */
export function readChatChunk({ choices = [], usage }: Completion, into: ArrivingAnswer): void {
  const { delta, finish_reason: reason } = choices[0] ?? {};
  if (delta) add(delta, into);
  if (reason) into.stopReason = reason;
  addUsage(usage, into);
}

function add(said: Said, into: ArrivingAnswer): void {
  addText(into, "thinking", said.reasoning_content ?? said.reasoning);
  for (const detail of said.reasoning_details ?? []) addDetail(detail, into);
  addText(into, "text", said.content);
  addText(into, "text", said.refusal);
  for (const call of said.tool_calls ?? []) addCall(call, into);
}

/** Text of the details repeats the reasoning. */
function addDetail({ type, text, signature, data }: Detail, into: ArrivingAnswer): void {
  if (type === "reasoning.encrypted" && data) into.parts.push({ type: "thinking", text: "", data });
  if (type !== "reasoning.text" || !signature) return;
  const thought = into.parts.findLast((part) => part.type === "thinking" && part.data === undefined);
  if (thought?.type === "thinking" && thought.signature === undefined) thought.signature = signature;
  else into.parts.push({ type: "thinking", text: text ?? "", signature });
}

/** A call begins with its id. Its further parts have its index. */
function addCall({ index, id, function: called = {} }: Call, into: ArrivingAnswer): void {
  const known = into.parts.filter((part): part is ToolPart => part.type === "tool");
  const begun = id && known.some((part) => part.id === id) ? undefined : id;
  if (begun) {
    const { name, arguments: written } = called;
    into.parts.push({ type: "tool", id: begun, name: name ?? "", arguments: written ?? "", result: "" });
  } else {
    const call = known.find((part) => part.id === id) ?? (index === undefined ? known.at(-1) : known[index]);
    if (call) call.arguments += called.arguments ?? "";
  }
}

function addUsage(usage: Usage | null | undefined, into: ArrivingAnswer): void {
  if (!usage) return;
  const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: details } = usage;
  const [cachedInput, cacheWrite] = [details?.cached_tokens, details?.cache_write_tokens];
  into.usage = {
    ...(input !== undefined && { input }),
    ...(output !== undefined && { output }),
    ...(cachedInput !== undefined && { cachedInput }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  };
}
