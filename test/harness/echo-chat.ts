import { type EchoPrompt, type EchoTurn, words } from "./echo-turn.ts";
import { list, record, string } from "./untyped.ts";

/** Any moment will do, but always the same one. */
const CREATED = 1_800_000_000;

/** Read a Chat Completions request as the echo model sees it. Lenient on purpose: a request is for its test to judge. */
export function readChatPrompt(body: unknown): EchoPrompt {
  const request = record(body);
  const turns = list(request.messages).map(record);
  const lastUser = turns.findLastIndex((turn) => turn.role === "user");
  const lastCall = turns.findLastIndex((turn) => turn.role === "assistant");
  const content = turns[lastUser]?.content;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : list(content).map(record);
  const choice = request.tool_choice;
  const format = record(request.response_format);
  const limit = request.max_completion_tokens ?? request.max_tokens;
  return {
    model: string(request.model),
    text: parts.flatMap((part) => (part.type === "text" ? [string(part.text)] : [])).join(" "),
    attachments: parts.flatMap((part) => (part.type === "text" ? [] : [attachment(part)])),
    toolResults: turns.flatMap((turn, index) => (turn.role === "tool" && index > lastCall ? [textOf(turn.content)] : [])),
    tools: list(request.tools)
      .map((tool) => record(record(tool).function))
      .map((tool) => ({ name: string(tool.name), schema: tool.parameters })),
    toolChoice: typeof choice === "string" ? choice : string(record(record(choice).function).name) || "auto",
    parallelCalls: request.parallel_tool_calls !== false,
    ...(format.type === "json_schema" && { schema: record(format.json_schema).schema }),
    thinks: typeof request.reasoning_effort === "string" && request.reasoning_effort !== "none",
    limit: typeof limit === "number" ? limit : undefined,
    stops: typeof request.stop === "string" ? [request.stop] : list(request.stop).map(string),
  };
}

/** The turn as a whole completion. */
export function writeCompletion(turn: EchoTurn, id: string): object {
  const message = {
    role: "assistant",
    content: turn.calls.length > 0 ? null : turn.text,
    refusal: null,
    ...(turn.thinking !== undefined && { reasoning_content: turn.thinking }),
    ...(turn.calls.length > 0 && { tool_calls: turn.calls.map(callOf) }),
  };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finishOf(turn) }];
  return { id, object: "chat.completion", created: CREATED, model: turn.model, choices, usage: usageOf(turn) };
}

/** The turn as the events of a Chat Completions stream, one text each; `includeUsage` as its stream option asks. */
export function writeCompletionChunks(turn: EchoTurn, id: string, includeUsage: boolean): string[] {
  const base = { id, object: "chat.completion.chunk", created: CREATED, model: turn.model };
  const chunk = (delta: object, finish: string | null = null) =>
    data({
      ...base,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(includeUsage && { usage: null }),
    });
  return [
    chunk({ role: "assistant", content: "" }),
    ...words(turn.thinking ?? "").map((word) => chunk({ reasoning_content: word })),
    ...words(turn.text).map((word) => chunk({ content: word })),
    ...turn.calls.flatMap((call, index) => {
      const { id: callId, type, function: named } = callOf(call);
      const pieces = [named.arguments.slice(0, 5), named.arguments.slice(5)];
      return [
        chunk({ tool_calls: [{ index, id: callId, type, function: { name: named.name, arguments: "" } }] }),
        ...pieces.map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ];
    }),
    chunk({}, finishOf(turn)),
    ...(includeUsage ? [data({ ...base, choices: [], usage: usageOf(turn) })] : []),
    "data: [DONE]\n\n",
  ];
}

function callOf(call: EchoTurn["calls"][number]) {
  return { id: call.id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.input) } } as const;
}

function finishOf(turn: EchoTurn): string {
  return { end: "stop", length: "length", tool: "tool_calls", "stop-sequence": "stop" }[turn.finish];
}

function usageOf({ inputTokens, outputTokens }: EchoTurn): object {
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens };
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function attachment(part: Readonly<Record<string, unknown>>): string {
  const url = string(record(part.image_url).url) || string(record(part.file).file_data);
  return `${part.type === "image_url" ? "image" : "document"} ${/^data:([^;,]+)/.exec(url)?.[1] ?? url}`;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map((part) => string(record(part).text))
    .join(" ");
}
