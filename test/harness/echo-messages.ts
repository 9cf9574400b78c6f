import { type EchoPrompt, type EchoTurn, words } from "./echo-turn.ts";
import { list, record, string } from "./untyped.ts";

/** Read a Messages request as the echo model sees it. Lenient on purpose: a request is for its test to judge. */
export function readMessagesPrompt(body: unknown): EchoPrompt {
  const request = record(body);
  const turns = list(request.messages).map(record);
  const lastTurn = turns.findLast((turn) => turn.role === "user") ?? {};
  const blocks =
    typeof lastTurn.content === "string" ? [{ type: "text", text: lastTurn.content }] : list(lastTurn.content).map(record);
  const choice = record(request.tool_choice);
  const format = record(record(request.output_config).format ?? request.output_format);
  const thinking = record(request.thinking).type;
  return {
    model: string(request.model),
    text: blocks.flatMap((block) => (block.type === "text" ? [string(block.text)] : [])).join(" "),
    attachments: blocks.flatMap((block) => (block.type === "image" || block.type === "document" ? [attachment(block)] : [])),
    toolResults: blocks.flatMap((block) => (block.type === "tool_result" ? [toolResult(block)] : [])),
    tools: list(request.tools).map((tool) => ({ name: string(record(tool).name), schema: record(tool).input_schema })),
    toolChoice: choice.type === "any" ? "required" : choice.type === "tool" ? string(choice.name) : string(choice.type ?? "auto"),
    parallelCalls: choice.disable_parallel_tool_use !== true,
    ...(format.type === "json_schema" && { schema: format.schema }),
    thinks: thinking === "enabled" || thinking === "adaptive",
    limit: typeof request.max_tokens === "number" ? request.max_tokens : undefined,
    stops: list(request.stop_sequences).map(string),
  };
}

/** The turn as a whole message. */
export function writeMessage(turn: EchoTurn, id: string): object {
  return {
    ...head(turn, id),
    content: blocksOf(turn),
    ...ending(turn),
    usage: { input_tokens: turn.inputTokens, output_tokens: turn.outputTokens },
  };
}

/** The turn as the events of a Messages stream, one text each. */
export function writeMessageEvents(turn: EchoTurn, id: string): string[] {
  const usage = { input_tokens: turn.inputTokens, output_tokens: 1 };
  return [
    event({ type: "message_start", message: { ...head(turn, id), content: [], stop_reason: null, stop_sequence: null, usage } }),
    event({ type: "ping" }),
    ...blocksOf(turn).flatMap(blockEvents),
    event({ type: "message_delta", delta: ending(turn), usage: { output_tokens: turn.outputTokens } }),
    event({ type: "message_stop" }),
  ];
}

type Block =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: unknown };

function blocksOf(turn: EchoTurn): Block[] {
  return [
    ...(turn.thinking === undefined ? [] : [{ type: "thinking", thinking: turn.thinking, signature: "c2lnbmVk" } as const]),
    ...(turn.text === "" ? [] : [{ type: "text", text: turn.text } as const]),
    ...turn.calls.map((call) => ({ type: "tool_use", ...call }) as const),
  ];
}

function blockEvents(block: Block, index: number): string[] {
  const delta = (value: object) => event({ type: "content_block_delta", index, delta: value });
  const around = (start: object, ...deltas: string[]) => [
    event({ type: "content_block_start", index, content_block: start }),
    ...deltas,
    event({ type: "content_block_stop", index }),
  ];
  switch (block.type) {
    case "thinking":
      return around(
        { type: "thinking", thinking: "", signature: "" },
        ...words(block.thinking).map((word) => delta({ type: "thinking_delta", thinking: word })),
        delta({ type: "signature_delta", signature: block.signature }),
      );
    case "text":
      return around({ type: "text", text: "" }, ...words(block.text).map((word) => delta({ type: "text_delta", text: word })));
    case "tool_use": {
      const input = JSON.stringify(block.input);
      const pieces = ["", input.slice(0, 5), input.slice(5)];
      return around({ ...block, input: {} }, ...pieces.map((piece) => delta({ type: "input_json_delta", partial_json: piece })));
    }
  }
}

function head(turn: EchoTurn, id: string) {
  return { id, type: "message", role: "assistant", model: turn.model };
}

function ending(turn: EchoTurn): { readonly stop_reason: string; readonly stop_sequence: string | null } {
  const reasons = { end: "end_turn", length: "max_tokens", tool: "tool_use", "stop-sequence": "stop_sequence" };
  return { stop_reason: reasons[turn.finish], stop_sequence: turn.stopSequence ?? null };
}

function event(data: { readonly type: string; readonly [field: string]: unknown }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function attachment(block: Readonly<Record<string, unknown>>): string {
  const source = record(block.source);
  return `${string(block.type)} ${string(source.media_type ?? source.url ?? source.type)}`;
}

function toolResult(block: Readonly<Record<string, unknown>>): string {
  const parts = list(block.content).map(record);
  const text = typeof block.content === "string" ? block.content : parts.map((part) => string(part.text ?? part.type)).join(" ");
  return block.is_error === true ? `error: ${text}` : text;
}
