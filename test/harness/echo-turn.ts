import { schemaSample } from "./schema-sample.ts";

/** The parts of a request that the echo model reads, independent of the protocol. */
export interface EchoPrompt {
  readonly model: string;
  /** Text of the newest user turn. */
  readonly text: string;
  /** The other contents of that turn, one note each: `image image/png`, `document application/pdf`. */
  readonly attachments: readonly string[];
  /** Texts of the tool results after it; a result that is an error begins with `error: `. */
  readonly toolResults: readonly string[];
  readonly tools: readonly EchoTool[];
  /** `auto`, `required`, `none`, or the name of the tool that must be called. */
  readonly toolChoice: string;
  readonly parallelCalls: boolean;
  /** The schema that the answer must fit. */
  readonly schema?: unknown;
  readonly thinks: boolean;
  /** In words, which are the echo model's tokens. */
  readonly limit: number | undefined;
  readonly stops: readonly string[];
}

export interface EchoTool {
  readonly name: string;
  readonly schema: unknown;
}

export interface EchoTurn {
  readonly model: string;
  readonly thinking?: string;
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly finish: "end" | "length" | "tool" | "stop-sequence";
  readonly stopSequence?: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * The echo model itself: the same prompt gives the same turn. A tool is called when it is forced, or when the prompt names it;
 * JSON right after its name becomes its input. Once results are there they are told as text.
 */
export function echoTurn(prompt: EchoPrompt): EchoTurn {
  const calls =
    prompt.toolResults.length > 0
      ? []
      : wantedTools(prompt).map((tool, index) => ({ id: `call_${index + 1}_${tool.name}`, ...tool }));
  const said = calls.length > 0 ? { text: "", finish: "tool" as const } : cutShort(answerTo(prompt), prompt);
  return {
    model: prompt.model,
    ...(prompt.thinks && { thinking: `thinking about: ${prompt.text}` }),
    calls,
    ...said,
    inputTokens: words(prompt.text).length + prompt.attachments.length + prompt.toolResults.length,
    outputTokens: words(said.text).length + calls.length,
  };
}

/** The words of a text, each with the white space before it: joined again they are the text. */
export function words(text: string): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}

function answerTo(prompt: EchoPrompt): string {
  if (prompt.schema !== undefined) return JSON.stringify(schemaSample(prompt.schema));
  if (prompt.toolResults.length > 0) return `tool result: ${prompt.toolResults.join(" | ")}`;
  return [`echo: ${prompt.text}`, ...prompt.attachments.map((each) => `[${each}]`)].join(" ");
}

function wantedTools(prompt: EchoPrompt): { readonly name: string; readonly input: unknown }[] {
  const { tools, toolChoice, text } = prompt;
  if (toolChoice === "none") return [];
  const forced = tools.filter((tool) => tool.name === toolChoice);
  const named = forced.length > 0 ? forced : tools.filter((tool) => tool.name !== "" && text.includes(tool.name));
  const wanted = named.length === 0 && toolChoice === "required" ? tools.slice(0, 1) : named;
  const called = prompt.parallelCalls ? wanted : wanted.slice(0, 1);
  return called.map((tool) => ({ name: tool.name, input: inputAfter(tool.name, text) ?? schemaSample(tool.schema) }));
}

/** The JSON object that follows the tool's name in the prompt, on the same line. */
function inputAfter(name: string, text: string): unknown {
  const match = new RegExp(`${RegExp.escape(name)}\\s*(\\{[^\\n]*?\\})(?:\\s|$)`).exec(text);
  try {
    return match?.[1] === undefined ? undefined : (JSON.parse(match[1]) as unknown);
  } catch {
    return undefined;
  }
}

function cutShort(text: string, { stops, limit }: EchoPrompt): Pick<EchoTurn, "text" | "finish" | "stopSequence"> {
  const stop = stops.find((each) => text.includes(each));
  if (stop !== undefined) return { text: text.slice(0, text.indexOf(stop)), finish: "stop-sequence", stopSequence: stop };
  const all = words(text);
  if (limit !== undefined && all.length > limit) return { text: all.slice(0, limit).join(""), finish: "length" };
  return { text, finish: "end" };
}
