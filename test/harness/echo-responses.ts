import { type EchoPrompt, type EchoTurn, words } from "./echo-turn.ts";
import { list, record, string } from "./untyped.ts";

type Item = Readonly<Record<string, unknown>>;

/** Read a Responses request as the echo model sees it. */
export function readResponsesPrompt(body: unknown): EchoPrompt {
  const request = record(body);
  const items = typeof request.input === "string" ? [said(request.input)] : list(request.input).map(record);
  const lastOwn = items.findLastIndex((item) => item.type === "function_call" || item.role === "assistant");
  const newest = items.slice(lastOwn + 1);
  const parts = newest.filter((item) => item.role === "user").flatMap(partsOf);
  const format = record(record(request.text).format);
  const choice = record(request.tool_choice);
  const { effort } = record(request.reasoning);
  return {
    model: string(request.model),
    text: parts.flatMap((part) => (part.type === "input_text" ? [string(part.text)] : [])).join(" "),
    attachments: parts.flatMap(attachment),
    toolResults: newest.flatMap((item) => (item.type === "function_call_output" ? [resultOf(item)] : [])),
    tools: list(request.tools).map((tool) => ({ name: string(record(tool).name), schema: record(tool).parameters })),
    toolChoice: typeof request.tool_choice === "string" ? request.tool_choice : string(choice.name ?? "auto"),
    parallelCalls: request.parallel_tool_calls !== false,
    ...(format.type === "json_schema" && { schema: format.schema }),
    thinks: effort !== undefined && effort !== "none",
    limit: typeof request.max_output_tokens === "number" ? request.max_output_tokens : undefined,
    stops: [],
  };
}

/** The turn as a whole response. */
export function writeResponse(turn: EchoTurn, id: string): object {
  return ended(turn, id, itemsOf(turn, id));
}

/** The turn as the events of a Responses stream, one text each. */
export function writeResponseEvents(turn: EchoTurn, id: string): string[] {
  let number = 0;
  const event = (data: { readonly type: string; readonly [field: string]: unknown }) =>
    `event: ${data.type}\ndata: ${JSON.stringify({ ...data, sequence_number: number++ })}\n\n`;
  const items = itemsOf(turn, id);
  const last = ended(turn, id, items);
  const first = { ...last, status: "in_progress", incomplete_details: null, output: [], usage: null };
  return [
    { type: "response.created", response: first },
    { type: "response.in_progress", response: first },
    ...items.flatMap((item, index) => itemEvents(item, index)),
    { type: last.status === "incomplete" ? "response.incomplete" : "response.completed", response: last },
  ].map(event);
}

function itemEvents(item: Item, output_index: number): { readonly type: string; readonly [field: string]: unknown }[] {
  const at = { item_id: item.id, output_index };
  const added = (begun: object) => ({ type: "response.output_item.added", output_index, item: { ...item, ...begun } });
  const done = { type: "response.output_item.done", output_index, item };
  if (item.type === "function_call") {
    const args = string(item.arguments);
    const delta = (piece: string) => ({ type: "response.function_call_arguments.delta", ...at, delta: piece });
    const end = { type: "response.function_call_arguments.done", ...at, arguments: args };
    return [added({ arguments: "", status: "in_progress" }), delta(args.slice(0, 5)), delta(args.slice(5)), end, done];
  }
  const isReasoning = item.type === "reasoning";
  const field = isReasoning ? "summary" : "content";
  const kind = isReasoning ? "reasoning_summary_text" : "output_text";
  const parts = list(item[field]).flatMap((value, index) => {
    const part = record(value);
    const place = { ...at, [isReasoning ? "summary_index" : "content_index"]: index };
    const around = `response.${isReasoning ? "reasoning_summary_part" : "content_part"}`;
    return [
      { type: `${around}.added`, ...place, part: { ...part, text: "" } },
      ...words(string(part.text)).map((word) => ({ type: `response.${kind}.delta`, ...place, delta: word })),
      { type: `response.${kind}.done`, ...place, text: part.text },
      { type: `${around}.done`, ...place, part },
    ];
  });
  return [added({ [field]: [], status: "in_progress" }), ...parts, done];
}

function itemsOf(turn: EchoTurn, id: string): Item[] {
  const text = { type: "output_text", text: turn.text, annotations: [], logprobs: [] };
  const reasoning = {
    type: "reasoning",
    id: `rs_${id}`,
    summary: [{ type: "summary_text", text: turn.thinking }],
    encrypted_content: sealed(`rs_${id}`),
  };
  return [
    ...(turn.thinking === undefined ? [] : [reasoning]),
    ...(turn.text === ""
      ? []
      : [{ type: "message", id: `msg_${id}`, role: "assistant", status: "completed", phase: "final_answer", content: [text] }]),
    ...turn.calls.map((call, index) => ({
      type: "function_call",
      id: `fc_${id}_${index}`,
      call_id: call.id,
      name: call.name,
      arguments: JSON.stringify(call.input),
      status: "completed",
    })),
  ];
}

/** The encrypted content of the reasoning item with this id. */
export function sealed(id: string): string {
  return `gAAAA-${Buffer.from(id).toString("base64")}`;
}

function ended(turn: EchoTurn, id: string, output: readonly Item[]) {
  const isCut = turn.finish === "length";
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: 1_800_000_000,
    status: isCut ? "incomplete" : "completed",
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    error: null,
    instructions: null,
    metadata: {},
    model: turn.model,
    output,
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    usage: {
      input_tokens: turn.inputTokens,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: turn.outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: turn.inputTokens + turn.outputTokens,
    },
  };
}

function said(text: unknown): Item {
  return { type: "message", role: "user", content: text };
}

function partsOf(item: Item): Item[] {
  return typeof item.content === "string" ? [{ type: "input_text", text: item.content }] : list(item.content).map(record);
}

function attachment(part: Item): string[] {
  const type = (url: unknown) => /^data:([^;,]+)/.exec(string(url))?.[1] ?? string(url);
  if (part.type === "input_image") return [`image ${type(part.image_url)}`];
  return part.type === "input_file" ? [`document ${type(part.file_data ?? part.file_url)}`] : [];
}

function resultOf(item: Item): string {
  if (typeof item.output === "string") return item.output.replace(/^\[tool error\] ?/, "error: ");
  const parts = list(item.output).map(record);
  return parts.map((part) => string(part.text ?? String(part.type).replace("input_", ""))).join(" ");
}
