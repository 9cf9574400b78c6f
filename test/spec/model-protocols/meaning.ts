import { isJsonObject, type Json, type JsonObject } from "../../../core/src/model-protocols/json.ts";

/**
 * What a request asks for, in words of neither protocol. Both readers are written from the protocols' own pages and from the
 * rules that the documentation of the conversion states, and share no code with it.
 */
export interface Meaning {
  readonly model: Json | undefined;
  /** Instructions at the head. */
  readonly system: string;
  readonly turns: readonly MeantTurn[];
  readonly tools: readonly string[];
  readonly choice: string;
  /** One call at a time. */
  readonly single: boolean;
  /** Undefined where the model is not asked to think: Chat Completions is not told more than that. */
  readonly effort: string | undefined;
  readonly limit: Json | undefined;
  /** Undefined where the model is to think: Messages takes no temperature then. */
  readonly temperature: Json | undefined;
  readonly topP: Json | undefined;
  readonly stops: readonly Json[];
  readonly stream: boolean;
  readonly schema: string | undefined;
  readonly user: Json | undefined;
}

interface MeantTurn {
  readonly role: "user" | "assistant";
  readonly text: string;
  /** Images and files, in order. */
  readonly media: readonly string[];
  readonly thinking: readonly string[];
  /** Name and input, with the number of the call in the conversation. */
  readonly calls: readonly string[];
  readonly results: readonly string[];
}

/** Reads the meaning of a Messages request. */
export function meaningOfMessages(body: JsonObject): Meaning {
  const head = textsOf(body.system);
  const story = new Story();
  for (const message of list(body.messages)) {
    if (message.role === "system") story.instruct(textsOf(message.content), head);
    else readMessagesTurn(story, message);
  }
  const config = object(body.output_config);
  const effort = effortOfMessages(object(body.thinking), config.effort);
  const choice = object(body.tool_choice);
  const format = object(config.format);
  return {
    model: body.model,
    system: head.join("\n\n"),
    turns: story.turns(),
    tools: list(body.tools).map((tool) => describeTool(tool, tool.input_schema)),
    choice: list(body.tools).length === 0 ? "" : String(choice.type === "tool" ? `tool ${choice.name}` : (choice.type ?? "auto")),
    single: choice.disable_parallel_tool_use === true && choice.type !== "none",
    effort,
    limit: body.max_tokens,
    temperature: thinks(effort) ? undefined : body.temperature,
    topP: thinks(effort) ? undefined : body.top_p,
    stops: (body.stop_sequences ?? []) as readonly Json[],
    stream: body.stream === true,
    schema: format.schema === undefined ? undefined : JSON.stringify(format.schema),
    user: object(body.metadata).user_id,
  };
}

/** Reads the meaning of a Chat Completions request. */
export function meaningOfChat(body: JsonObject): Meaning {
  const head: string[] = [];
  const story = new Story();
  for (const message of list(body.messages)) {
    if (message.role === "system" || message.role === "developer") story.instruct(textsOf(message.content), head);
    else readChatMessage(story, message);
  }
  const effort = effortOfChat(body.reasoning_effort);
  const chosen = body.tool_choice ?? "auto";
  const choice = isJsonObject(chosen) ? `tool ${object(chosen.function).name}` : chosen === "required" ? "any" : String(chosen);
  const stop = body.stop ?? [];
  const format = object(object(body.response_format).json_schema);
  return {
    model: body.model,
    system: head.join("\n\n"),
    turns: story.turns(),
    tools: list(body.tools).map((tool) => describeTool(object(tool.function), object(tool.function).parameters)),
    choice: list(body.tools).length === 0 ? "" : choice,
    single: body.parallel_tool_calls === false && choice !== "none" && list(body.tools).length > 0,
    effort,
    limit: body.max_completion_tokens ?? body.max_tokens ?? (thinks(effort) ? 32_000 : 8_192),
    temperature: thinks(effort) ? undefined : body.temperature,
    topP: thinks(effort) ? undefined : body.top_p,
    stops: typeof stop === "string" ? [stop] : (stop as readonly Json[]),
    stream: body.stream === true,
    schema: format.schema === undefined ? undefined : JSON.stringify(format.schema),
    user: body.safety_identifier ?? body.user,
  };
}

interface TurnInMaking {
  readonly role: MeantTurn["role"];
  readonly texts: string[];
  readonly media: string[];
  readonly thinking: string[];
  readonly calls: string[];
  readonly results: string[];
}

/** A conversation while it is read: neighbours of one role are one turn, and calls are known by their number. */
class Story {
  readonly #turns: TurnInMaking[] = [];
  readonly #numbers = new Map<string, number>();

  at(role: MeantTurn["role"]): TurnInMaking {
    const last = this.#turns.at(-1);
    if (last?.role === role) return last;
    const turn: TurnInMaking = { role, texts: [], media: [], thinking: [], calls: [], results: [] };
    this.#turns.push(turn);
    return turn;
  }

  /** An instruction before the first message belongs to the head. A later one is a marked text in its place. */
  instruct(texts: readonly string[], head: string[]): void {
    const said = texts.filter((text) => text.trim() !== "");
    if (said.length === 0) return;
    if (this.#turns.length === 0) head.push(...said);
    else this.at("user").texts.push(`<system>\n${said.join("\n\n")}\n</system>`);
  }

  call(id: Json | undefined, name: Json | undefined, input: Json | undefined): void {
    const number = this.#numbers.size;
    this.#numbers.set(String(id), number);
    this.at("assistant").calls.push(`${number} ${name} ${JSON.stringify(input)}`);
  }

  /** What a tool message can't hold stands behind its label in the same turn; the label in the text is a mark without meaning. */
  result(id: Json | undefined, text: string): void {
    const own = (text.trim() === "" ? "" : text)
      .split("\n\n")
      .filter((piece) => !/^(\[tool error\] )?\[attachment \d+: in the next user message\]$/.test(piece))
      .join("\n\n");
    const failed = text.startsWith("[tool error]") && !own.startsWith("[tool error]");
    this.at("user").results.push(`${this.number(id)} ${failed ? markFailed(own) : own}`);
  }

  number(id: Json | undefined): string {
    return String(this.#numbers.get(String(id)) ?? "unknown");
  }

  turns(): MeantTurn[] {
    const spoken = this.#turns.filter((turn, index) => index > 0 || turn.texts.join() !== "(start of conversation)");
    return spoken.map(({ texts, ...turn }, index) => {
      const text = texts.filter((piece) => piece.trim() !== "" && piece !== "(empty message)").join("\n\n");
      const isLast = index === spoken.length - 1 && turn.role === "assistant" && turn.calls.length === 0;
      return { ...turn, text: isLast ? text.trimEnd() : text };
    });
  }
}

function readMessagesTurn(story: Story, message: JsonObject): void {
  const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : list(message.content);
  if (message.role === "assistant") {
    for (const block of blocks) {
      if (block.type === "tool_use") story.call(block.id, block.name, block.input);
      else if (block.type === "text") story.at("assistant").texts.push(String(block.text));
      else story.at("assistant").thinking.push(`${block.thinking ?? ""}/${block.signature ?? ""}/${block.data ?? ""}`);
    }
    return;
  }
  const turn = story.at("user");
  for (const result of blocks.filter((block) => block.type === "tool_result")) {
    const parts = typeof result.content === "string" ? [{ type: "text", text: result.content }] : list(result.content);
    const text = parts.flatMap((part) => (part.type === "text" ? [String(part.text)] : [])).join("\n\n");
    story.result(result.tool_use_id, result.is_error === true ? markFailed(text) : text);
    for (const part of parts)
      if (part.type !== "text") turn.media.push(`of call ${story.number(result.tool_use_id)}`, mediaOfBlock(part));
  }
  for (const block of blocks) {
    if (block.type === "text") readUserText(story, String(block.text));
    else if (block.type !== "tool_result") turn.media.push(mediaOfBlock(block));
  }
}

function readChatMessage(story: Story, message: JsonObject): void {
  if (message.role === "tool") {
    story.result(message.tool_call_id, textsOf(message.content).join("\n\n"));
    return;
  }
  if (message.role === "user") {
    const turn = story.at("user");
    const parts = typeof message.content === "string" ? [{ type: "text", text: message.content }] : list(message.content);
    for (const part of parts) {
      if (part.type === "text") readUserText(story, String(part.text));
      else turn.media.push(mediaOfPart(part));
    }
    return;
  }
  const text = textsOf(message.content).join("\n\n");
  const details = list(message.reasoning_details);
  // Unsigned reasoning has no place in Messages.
  for (const detail of details) {
    story.at("assistant").thinking.push(`${detail.text ?? ""}/${detail.signature ?? ""}/${detail.data ?? ""}`);
  }
  if (text.trim() !== "") story.at("assistant").texts.push(text);
  for (const call of list(message.tool_calls)) {
    const { name, arguments: args } = object(call.function);
    story.call(call.id, name, JSON.parse(String(args)));
  }
}

/** A label says whose result the next image belongs to: it counts as the image's, not as something said. */
function readUserText(story: Story, text: string): void {
  const label = /^\[attachment \d+ of the result of tool call (.*)\]$/s.exec(text);
  if (label) story.at("user").media.push(`of call ${story.number(label[1])}`);
  else story.at("user").texts.push(text);
}

function markFailed(text: string): string {
  return text === "" ? "[tool error]" : `[tool error] ${text}`;
}

function mediaOfBlock(block: JsonObject): string {
  const source = object(block.source);
  const place = source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;
  return block.type === "document" ? `${block.title ?? "document.pdf"} ${place}` : String(place);
}

function mediaOfPart(part: JsonObject): string {
  const file = object(part.file);
  return part.type === "file" ? `${file.filename ?? "document.pdf"} ${file.file_data}` : String(object(part.image_url).url);
}

function effortOfMessages(thinking: JsonObject, effort: Json | undefined): string | undefined {
  if (thinking.type === "disabled") return undefined;
  if (effort !== undefined) return String(effort);
  if (thinking.type === "adaptive") return "high";
  if (thinking.type !== "enabled") return undefined;
  const budget = Number(thinking.budget_tokens);
  return budget < 4_096 ? "low" : budget < 16_384 ? "medium" : "high";
}

function effortOfChat(effort: Json | undefined): string | undefined {
  if (effort === "minimal") return "low";
  return effort === undefined || effort === "none" ? undefined : String(effort);
}

function thinks(effort: string | undefined): boolean {
  return effort !== undefined;
}

function describeTool(tool: JsonObject, schema: Json | undefined): string {
  const { type, ...rest } = object(schema);
  return JSON.stringify([tool.name, tool.description, tool.strict, type ?? "object", { properties: {}, ...rest }]);
}

function textsOf(content: Json | undefined): string[] {
  if (typeof content === "string") return [content];
  return list(content).map((part) => String(part.text));
}

function list(value: Json | undefined): JsonObject[] {
  return (value ?? []) as unknown as JsonObject[];
}

function object(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
