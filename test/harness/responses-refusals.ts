import { sealed } from "./echo-responses.ts";
import { list, record, string } from "./untyped.ts";

type Item = Readonly<Record<string, unknown>>;

/** An error as the vendor writes it. */
export interface ResponsesRefusal {
  readonly message: string;
  readonly type: "invalid_request_error";
  readonly param: string | null;
  readonly code: string | null;
}

/** What a model or an account of the vendor does not accept. */
export interface ResponsesLimits {
  /** pydantic/pydantic-ai#2865: only models that reason can encrypt it. */
  readonly encrypts?: boolean;
  /** BerriAI/litellm#16032: accounts that are not verified get no summaries. */
  readonly summarizes?: boolean;
  /** openai/codex#8145: reasoning of another organization. */
  readonly opens?: (encrypted: string) => boolean;
  /** "Unsupported parameter: 'temperature' is not supported with this model.": models that reason. */
  readonly samples?: boolean;
}

/** The parameters of POST /v1/responses: `ResponseCreateParamsBase` of the vendor's client library, openai 7.55. */
const PARAMETERS = new Set(
  `background context_management conversation include input instructions max_output_tokens max_tool_calls metadata model moderation
  parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier
  service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user`.split(/\s+/),
);

/** What the vendor says of a request. Undefined: it accepts it. */
export function responsesRefusal(body: unknown, limits: ResponsesLimits = {}): ResponsesRefusal | undefined {
  const request = record(body);
  const items = typeof request.input === "string" ? [] : list(request.input).map(record);
  return (
    parametersOf(request) ??
    limitsOf(request, items, limits) ??
    toolsOf(request) ??
    (request.input === "" || (typeof request.input !== "string" && items.length === 0)
      ? refusal("One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.", "input")
      : undefined) ??
    partsOf(items) ??
    callsOf(items) ??
    reasoningOf(items)
  );
}

function parametersOf(request: Item): ResponsesRefusal | undefined {
  const unknown = Object.keys(request).find((key) => !PARAMETERS.has(key));
  if (unknown) return refusal(`Unknown parameter: '${unknown}'.`, unknown, "unknown_parameter");
  const { max_output_tokens: limit, safety_identifier: identifier } = request;
  // QuantumNous/new-api#2866
  if (typeof limit === "number" && limit < 16)
    return refusal(
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${limit} instead.`,
      "max_output_tokens",
      "integer_below_min_value",
    );
  // "The maximum length is 64 characters": the reference of the parameter.
  if (string(identifier ?? "").length > 64)
    return refusal("Invalid 'safety_identifier': string too long.", "safety_identifier", "string_above_max_length");
  return undefined;
}

function limitsOf(request: Item, items: readonly Item[], limits: ResponsesLimits): ResponsesRefusal | undefined {
  if (limits.encrypts === false && list(request.include).includes("reasoning.encrypted_content"))
    return refusal("Encrypted content is not supported with this model.", "include");
  if (limits.summarizes === false && record(request.reasoning).summary !== undefined)
    return refusal(
      "Your organization must be verified to generate reasoning summaries.",
      "reasoning.summary",
      "unsupported_value",
    );
  if (limits.samples === false && request.temperature !== undefined)
    return refusal(
      "Unsupported parameter: 'temperature' is not supported with this model.",
      "temperature",
      "unsupported_parameter",
    );
  const opens = limits.opens ?? (() => true);
  const isClosed = items.some(({ type, encrypted_content: text }) => type === "reasoning" && !opens(string(text)));
  return isClosed
    ? refusal("The encrypted content gAAA...DQ== could not be verified.", null, "invalid_encrypted_content")
    : undefined;
}

function toolsOf(request: Item): ResponsesRefusal | undefined {
  const tools = list(request.tools).map(record);
  for (const [index, tool] of tools.entries()) {
    // A tool in the nested form of Chat Completions.
    if (tool.type === "function" && typeof tool.name !== "string")
      return refusal(`Missing required parameter: 'tools[${index}].name'.`, `tools[${index}].name`, "missing_required_parameter");
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(string(tool.name)))
      return refusal(`Invalid 'tools[${index}].name'`, `tools[${index}].name`, "invalid_value");
    if (["anyOf", "oneOf", "allOf"].some((key) => key in record(tool.parameters)))
      return refusal(
        `Invalid schema for function '${string(tool.name)}'`,
        `tools[${index}].parameters`,
        "invalid_function_parameters",
      );
    // 0xPlaygrounds/rig#2477: without it, the vendor makes all properties required. No test wants that.
    if (typeof tool.strict !== "boolean") return refusal(`The strictness of tool ${index} is not said`, `tools[${index}].strict`);
    if (tool.strict && !isStrict(tool.parameters))
      return refusal(`Invalid schema for function '${string(tool.name)}'`, `tools[${index}].parameters`);
  }
  const format = record(record(request.text).format);
  // BerriAI/litellm#38211
  if (format.strict === true && !isStrict(format.schema))
    return refusal("Invalid schema for response_format: 'required' must include every key in properties.", "text.format.schema");
  return undefined;
}

function isStrict(value: unknown): boolean {
  const schema = record(value);
  if (schema.type !== "object") return true;
  const keys = Object.keys(record(schema.properties));
  return schema.additionalProperties === false && keys.every((key) => list(schema.required).includes(key));
}

/** langchain-ai/langchainjs#11039; vllm-project/vllm#41355: a message with `output_text` has an id and a status. */
function partsOf(items: readonly Item[]): ResponsesRefusal | undefined {
  for (const [index, { role, content, id, status }] of items.entries()) {
    if (!Array.isArray(content)) continue;
    const types = content.map((part) => string(record(part).type));
    const own = role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
    const wrong = types.find((type) => !own.includes(type));
    if (wrong) return refusal(`Invalid value: '${wrong}'.`, `input[${index}].content[0]`, "invalid_value");
    if (role === "assistant" && (typeof id !== "string" || status !== "completed"))
      return refusal(`Missing required parameter: 'input[${index}].id'.`, `input[${index}].id`, "missing_required_parameter");
  }
  return undefined;
}

/** agentjido/req_llm#426, Azure/azure-sdk-for-python#46092. */
function callsOf(items: readonly Item[]): ResponsesRefusal | undefined {
  const open = new Set<string>();
  for (const [index, item] of items.entries()) {
    const id = string(item.call_id ?? "");
    if (id.length > 64)
      return refusal(
        `Invalid 'input[${index}].call_id': string too long. Expected a string with maximum length 64.`,
        `input[${index}].call_id`,
        "string_above_max_length",
      );
    if (item.type === "function_call") open.add(id);
    if (item.type === "function_call_output" && !open.delete(id))
      return refusal(`No tool call found for function call output with call_id ${id}.`, "input");
  }
  const [left] = open;
  return left === undefined ? undefined : refusal(`No tool output found for function call ${left}.`, "input");
}

/** continuedev/continue#8933 and #11994, newo-ether/Agora#141, anomalyco/opencode#7724. */
function reasoningOf(items: readonly Item[]): ResponsesRefusal | undefined {
  const ids = new Set<string>();
  for (const [index, item] of items.entries()) {
    const before = items[index - 1];
    const id = string(item.id ?? "");
    if (item.role === "assistant" && id !== "" && before?.type !== "reasoning")
      return refusal(`Item '${id}' of type 'message' was provided without its required 'reasoning' item.`, "input");
    if (item.type !== "reasoning") continue;
    const next = items.slice(index + 1).find(({ type }) => type !== "reasoning");
    if (next?.type !== "function_call" && next?.role !== "assistant")
      return refusal(`Item '${id}' of type 'reasoning' was provided without its required following item.`, "input");
    // OpenHands/software-agent-sdk#1754
    if (next.role === "assistant" && next.id === undefined)
      return refusal(`Item '${id}' of type 'reasoning' was provided without its required following item.`, "input");
    if (!Array.isArray(item.summary))
      return refusal(
        `Missing required parameter: 'input[${index}].summary'.`,
        `input[${index}].summary`,
        "missing_required_parameter",
      );
    if (typeof item.encrypted_content !== "string")
      return refusal(`Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`, "input");
    if (item.encrypted_content !== sealed(id))
      return refusal("The encrypted content could not be verified.", null, "invalid_encrypted_content");
    if (ids.has(id)) return refusal(`Duplicate item found with id ${id}.`, "input");
    ids.add(id);
  }
  return undefined;
}

function refusal(message: string, param: string | null, code: string | null = null): ResponsesRefusal {
  return { message, type: "invalid_request_error", param, code };
}
