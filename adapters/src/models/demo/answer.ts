import type { DemoRequest } from "./request.ts";
import { sampleOf } from "./sample.ts";

export type DemoBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: unknown };

export interface DemoAnswer {
  readonly content: readonly DemoBlock[];
  readonly stopReason: "end_turn" | "tool_use" | "max_tokens";
  readonly inputTokens: number;
  readonly outputTokens: number;
}

interface Block {
  readonly type?: string;
  readonly text?: string;
  readonly content?: unknown;
}

interface Tool {
  readonly name?: string;
  readonly input_schema?: unknown;
}

/** A token is about four characters: precise enough for a model that counts no tokens. */
const CHARACTERS_PER_TOKEN = 4;
const LONGEST_ECHO = 400;

/**
 * The answer of the demo model, a pure function of the request: the same question always gets the same answer. It calls a tool if
 * it must (`tool_choice`), or if the question names one. It reports the result of a tool. It fills a schema if requested.
 */
export function demoAnswer(request: DemoRequest): DemoAnswer {
  const messages = listOf<{ role?: string; content?: unknown }>(request.messages);
  const last = messages.at(-1);
  const blocks = blocksOf(last?.content);
  const said = textOf(blocks);
  const results = blocks.filter((block) => block.type === "tool_result");
  const content =
    results.length > 0
      ? resultReport(results)
      : (toolCall(request, said, messages.length) ?? [{ type: "text", text: plainAnswer(request, said, blocks) }]);
  const inputTokens = tokensOf(JSON.stringify(messages));
  return fitted(content, inputTokens, request.max_tokens ?? Number.POSITIVE_INFINITY);
}

function plainAnswer(request: DemoRequest, said: string, blocks: readonly Block[]): string {
  const format = (request.output_config as { format?: { type?: string; schema?: unknown } } | undefined)?.format;
  if (format?.type === "json_schema") return JSON.stringify(sampleOf(format.schema, shortened(said) || "demo"));
  const others = blocks.filter((block) => block.type !== "text").map((block) => block.type);
  const seen = others.length > 0 ? ` With it came: ${others.join(", ")}.` : "";
  return said
    ? `You said: ${shortened(said)}${seen} (This is the offline demo model.)`
    : `Hello from the offline demo model.${seen}`;
}

function toolCall(request: DemoRequest, said: string, turn: number): DemoBlock[] | undefined {
  const tools = listOf<Tool>(request.tools).filter((tool) => typeof tool.name === "string" && tool.name !== "");
  const choice = request.tool_choice as { type?: string; name?: string; disable_parallel_tool_use?: unknown } | null | undefined;
  if (choice?.type === "none") return undefined;
  const forced =
    choice?.type === "tool" ? tools.find((tool) => tool.name === choice.name) : choice?.type === "any" ? tools[0] : undefined;
  const named = tools.filter((tool) => said.includes(tool.name!));
  const chosen = forced ? [forced] : choice?.disable_parallel_tool_use === true ? named.slice(0, 1) : named;
  if (chosen.length === 0) return undefined;
  return chosen.map((tool, index) => ({
    type: "tool_use",
    id: `toolu_demo_${turn}_${index}`,
    name: tool.name!,
    input: sampleOf(tool.input_schema ?? { type: "object" }, shortened(said) || "demo"),
  }));
}

function resultReport(results: readonly Block[]): DemoBlock[] {
  const told = results.map((result) => (typeof result.content === "string" ? result.content : textOf(blocksOf(result.content))));
  return [{ type: "text", text: `The tool answered: ${shortened(told.join("; "))}` }];
}

function fitted(content: readonly DemoBlock[], inputTokens: number, limit: number): DemoAnswer {
  const first = content[0];
  const length = tokensOf(content.map((block) => (block.type === "text" ? block.text : JSON.stringify(block.input))).join(""));
  if (first?.type === "text" && length > limit) {
    const text = [...first.text].slice(0, limit * CHARACTERS_PER_TOKEN).join("");
    return { content: [{ type: "text", text }], stopReason: "max_tokens", inputTokens, outputTokens: limit };
  }
  return { content, stopReason: first?.type === "tool_use" ? "tool_use" : "end_turn", inputTokens, outputTokens: length };
}

function blocksOf(content: unknown): readonly Block[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : listOf<Block>(content);
}

function listOf<T extends object>(value: unknown): readonly T[] {
  return Array.isArray(value) ? value.filter((each): each is T => typeof each === "object" && each !== null) : [];
}

function textOf(blocks: readonly Block[]): string {
  return blocks.flatMap((block) => (block.type === "text" && typeof block.text === "string" ? [block.text] : [])).join("\n");
}

function shortened(text: string): string {
  if (text.length <= LONGEST_ECHO) return text;
  // Does not cut within a character.
  return `${text.slice(0, LONGEST_ECHO).replace(/[\ud800-\udbff]$/, "")}…`;
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}
