import { parseJson, ports } from "@portico/core";
import { faultText, type JsonSchema, type SchemaChecks } from "@portico/core/kit";
import { type JsonObject, mergeUsage, type Usage } from "@portico/core/model-protocols";
import { type CountedCalls, inputTokensOf } from "../../models/call/counted-calls.ts";
import type { ModelMeter } from "../../models/call/model-meter.ts";
import type { ModelRequest } from "../../models/call/model-request.ts";
import { openModel } from "../../models/call/open-model.ts";

export interface ModelWork {
  readonly telemetry: ModelMeter["telemetry"];
  /** Counts the calls. Undefined: they are not counted. */
  readonly counted: CountedCalls | undefined;
  readonly provider: ports.ModelProvider;
  readonly model: string;
  readonly request: ModelRequest;
}

export interface ModelText {
  readonly text: string;
  readonly usage: { readonly inputTokens: number | null; readonly outputTokens: number | null };
}

/** A whole answer: its text, and the arguments of its first tool call. */
interface Generated {
  readonly text: string;
  readonly json: string | undefined;
  readonly usage: Usage | undefined;
}

/** Both protocols and most models support forced tool calls. Fewer support answer formats. */
const TOOL = "answer";
const REPAIRS = 1;

/** Throws NodeFailed, or the signal's reason. */
export async function askForText(work: ModelWork, signal: AbortSignal): Promise<ModelText> {
  const { text, usage } = await generate(work, signal);
  return { text, usage: { inputTokens: inputTokensOf(usage) ?? null, outputTokens: usage?.output ?? null } };
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
  const tool = { name: TOOL, description: "Gives the answer.", input_schema: asObject(schema) as JsonObject };
  let request: ModelRequest = { ...work.request, tools: [tool], tool_choice: { type: "tool", name: TOOL } };
  for (let repair = 0; ; repair++) {
    const { said, value } = outputOf(await generate({ ...work, request }, signal), schema);
    const fault = value === undefined ? "the output is not JSON" : await outputFault(checks, schema, value, signal);
    if (fault === undefined) return value;
    if (repair === REPAIRS) throw new ports.NodeFailed("model_output_invalid", `The model's output does not fit: ${fault}`);
    const correction = `That does not fit the schema: ${fault}. Call ${TOOL} with what fits.`;
    request = {
      ...request,
      messages: [
        ...request.messages,
        { role: "assistant", content: [{ type: "text", text: said || "(nothing)" }] },
        { role: "user", content: [{ type: "text", text: correction }] },
      ],
    };
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

async function generate({ telemetry, counted, provider, model, request }: ModelWork, signal: AbortSignal): Promise<Generated> {
  try {
    const asked = openModel(provider, model, { source: "workflow", telemetry, counted });
    let text = "";
    let json: string | undefined;
    let usage: Usage | undefined;
    for await (const events of asked.ask(request, { stream: false }, signal)) {
      for (const event of events) {
        if (event.type === "text") text += event.text;
        if (event.type === "tool-start" && event.call === 0) json = "";
        if (event.type === "tool-arguments" && event.call === 0) json = (json ?? "") + event.json;
        if (event.type === "usage" || event.type === "start") usage = mergeUsage(usage, event.usage);
      }
    }
    return { text, json, usage };
  } catch (error) {
    signal.throwIfAborted();
    throw toNodeFailed(error as Error);
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
function outputOf({ text, json }: Generated, schema: JsonSchema): { readonly said: string; readonly value?: unknown } {
  // Models without tools answer in text, and the text may be correct.
  const said = json ?? text;
  try {
    const value = parseJson(json === undefined ? withoutFence(said) : said || "{}");
    return {
      said,
      value: json !== undefined && schema["type"] !== "object" ? (value as { result?: unknown } | null)?.result : value,
    };
  } catch {
    return { said };
  }
}

function withoutFence(text: string): string {
  const trimmed = text.trim();
  const fence = /^```(?:json)?[^\S\n]*\n/.exec(trimmed);
  return fence && trimmed.endsWith("\n```") ? trimmed.slice(fence[0].length, -4) : text;
}
