import { parseJson, ports } from "@portico/core";
import { faultText, type JsonSchema, type SchemaChecks } from "@portico/core/kit";
import type { CountedCalls } from "../../agent-engines/loop/counted-calls.ts";
import type { LanguageModel, Prompt } from "../../agent-engines/loop/language-model.ts";
import type { ModelMeter } from "../../agent-engines/loop/measured-model.ts";
import { openLanguageModel } from "../../agent-engines/loop/open-language-model.ts";
import { toModelError } from "../../agent-engines/loop/model-error.ts";

export interface ModelWork {
  readonly telemetry: ModelMeter["telemetry"];
  /** Counts the calls. Undefined: they are not counted. */
  readonly counted: CountedCalls | undefined;
  readonly provider: ports.ModelProvider;
  readonly model: string;
  readonly prompt: Prompt;
  readonly maxOutputTokens: number | undefined;
  readonly temperature: number | undefined;
}

export interface ModelText {
  readonly text: string;
  readonly usage: { readonly inputTokens: number | null; readonly outputTokens: number | null };
}

type Generated = Awaited<ReturnType<LanguageModel["doGenerate"]>>;

/** Both protocols and most models support forced tool calls. Fewer support answer formats. */
const TOOL = "answer";
const REPAIRS = 1;

/** Throws NodeFailed, or the signal's reason. */
export async function askForText(work: ModelWork, signal: AbortSignal): Promise<ModelText> {
  const { content, usage } = await generate(work, undefined, signal);
  return {
    text: textOf(content),
    usage: { inputTokens: usage.inputTokens.total ?? null, outputTokens: usage.outputTokens.total ?? null },
  };
}

/**
 * A value that fits the schema. A model whose answer does not fit gets one correction. Throws NodeFailed, or the signal's reason.
 */
export async function askForOutput(
  work: ModelWork,
  schema: JsonSchema,
  checks: SchemaChecks,
  signal: AbortSignal,
): Promise<unknown> {
  let { prompt } = work;
  for (let repair = 0; ; repair++) {
    const { content } = await generate({ ...work, prompt }, schema, signal);
    const { said, value } = outputOf(content, schema);
    const fault = value === undefined ? "the output is not JSON" : await outputFault(checks, schema, value, signal);
    if (fault === undefined) return value;
    if (repair === REPAIRS) throw new ports.NodeFailed("model_output_invalid", `The model's output does not fit: ${fault}`);
    prompt = [
      ...prompt,
      { role: "assistant", content: [{ type: "text", text: said || "(nothing)" }] },
      { role: "user", content: [{ type: "text", text: `That does not fit the schema: ${fault}. Call ${TOOL} with what fits.` }] },
    ];
  }
}

async function outputFault(
  checks: SchemaChecks,
  schema: JsonSchema,
  value: unknown,
  signal: AbortSignal,
): Promise<string | undefined> {
  const checked = await checks.check(schema, value, { signal });
  if ("unusable" in checked) return checked.unusable;
  return "faults" in checked ? faultText(checked.faults, "the output") : undefined;
}

async function generate(
  { telemetry, counted, provider, model, prompt, maxOutputTokens, temperature }: ModelWork,
  schema: JsonSchema | undefined,
  signal: AbortSignal,
): Promise<Generated> {
  try {
    const asked = await openLanguageModel(provider, model, { source: "workflow", telemetry, counted });
    return await asked.doGenerate({
      prompt,
      abortSignal: signal,
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(temperature !== undefined && { temperature }),
      ...(schema && {
        tools: [{ type: "function", name: TOOL, description: "Gives the answer.", inputSchema: asObject(schema) }],
        toolChoice: { type: "tool", toolName: TOOL },
      }),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw toNodeFailed(toModelError(error, provider));
  }
}

export function toNodeFailed(error: Error): ports.NodeFailed {
  const { name, message } = error;
  if (name === "ModelTimeout") return new ports.NodeFailed("model_timeout", message, { cause: error });
  if (name === "ModelUnreachable") return new ports.NodeFailed("model_unreachable", message, { cause: error });
  const { isPassing, status } = error as { readonly isPassing?: boolean; readonly status?: number };
  return new ports.NodeFailed("model_refused", message, { cause: error, retryable: isPassing === true || status === 409 });
}

/** Arguments of a tool are an object. Any other value is wrapped in one. */
function asObject(schema: JsonSchema): JsonSchema {
  const { $schema: _dialect, $defs, ...rest } = schema;
  if (rest["type"] === "object") return { ...rest, ...($defs !== undefined && { $defs }) };
  return {
    type: "object",
    properties: { result: rest },
    required: ["result"],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
  };
}

/** `value` is undefined if the model's answer is not JSON. */
function outputOf(content: Generated["content"], schema: JsonSchema): { readonly said: string; readonly value?: unknown } {
  const call = content.find((part) => part.type === "tool-call");
  // Models without tools answer in text, and the text may be correct.
  const said = call?.input ?? textOf(content);
  try {
    const value = parseJson(call ? said : withoutFence(said));
    return { said, value: call && schema["type"] !== "object" ? (value as { result?: unknown } | null)?.result : value };
  } catch {
    return { said };
  }
}

function withoutFence(text: string): string {
  const trimmed = text.trim();
  const fence = /^```(?:json)?[^\S\n]*\n/.exec(trimmed);
  return fence && trimmed.endsWith("\n```") ? trimmed.slice(fence[0].length, -4) : text;
}

function textOf(content: Generated["content"]): string {
  return content.flatMap((part) => (part.type === "text" ? part.text : [])).join("");
}
