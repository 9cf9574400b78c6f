import { echoModel } from "./echo-model.ts";
import { json } from "./upstream-answers.ts";
import type { Answer } from "./upstream-exchange.ts";

/** Vendors whose refusals are known, each rule with its source. */
export type Vendor = keyof typeof REFUSALS;

/** The echo model, behind the rules of a vendor: what the real one refuses is refused, in its words. */
export function refusingModel(vendor: Vendor): Answer {
  const echo = echoModel({ models: ["echo-large"] });
  return async (exchange) => {
    const text = (await exchange.request.bytes()).toString("utf8");
    const refusal = text === "" ? undefined : refusalOf(vendor, text);
    const type = "invalid_request_error";
    if (refusal === undefined) return echo(exchange);
    return json(400, { type: "error", error: { type, message: refusal }, object: "error", message: refusal })(exchange);
  };
}

/** What a vendor says of a request's text. Undefined: it accepts it. */
export function refusalOf(vendor: Vendor, text: string): string | undefined {
  // Most servers read the escapes strictly: anthropics/claude-code#60394.
  if (/(?<!\\)(?:\\\\)*\\ud[89ab]/i.test(text)) return "The request body is not valid JSON: no low surrogate in string";
  const body = JSON.parse(text);
  return REFUSALS[vendor].map((rule) => rule(body)).find((refusal) => refusal !== undefined);
}

type Rule = (body: any) => string | undefined;

const CHAT_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** platform.openai.com/docs/api-reference/chat: the pattern of `tools[].function.name`, also in calls; makenotion/notion-mcp-server#340. */
const published: Rule = ({ tools = [], messages }) => {
  const called = messages.flatMap((message: any) => message.tool_calls ?? []);
  for (const { function: named } of [...tools, ...called])
    if (!CHAT_NAME.test(named.name)) return `Invalid function name '${named.name.slice(0, 9)}…'`;
  for (const { function: named } of tools) {
    const { parameters } = named;
    if (["anyOf", "oneOf", "allOf"].some((key) => key in (parameters ?? {})))
      return "Invalid schema for function: schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf' at the top level";
    // spring-projects/spring-ai#4776, ruvnet/ruflo#1294
    if (parameters && !parameters.properties)
      return `Invalid schema for function '${named.name}': object schema missing properties.`;
    if (schemasOf(parameters).some(({ type, items }) => type === "array" && (!items || Array.isArray(items))))
      return `Invalid schema for function '${named.name}': array schema missing items.`;
  }
  return twice(tools.map(({ function: named }: any) => named.name)) ? "Tool names must be unique." : undefined;
};

/** The schema and all schemas within it. */
function schemasOf(schema: any): any[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, items = [], anyOf = [], oneOf = [], allOf = [], additionalProperties } = schema;
  return [schema, ...[Object.values(properties), items, anyOf, oneOf, allOf, additionalProperties].flat().flatMap(schemasOf)];
}

function twice(names: readonly string[]): boolean {
  return new Set(names).size < names.length;
}

/** A result belongs to a call of the message before it, and each call has one: platform.openai.com/docs/guides/function-calling. */
const paired: Rule = ({ messages }) => {
  const used = new Set<string>();
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id))
        return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'";
      continue;
    }
    if (open.size > 0) return "An assistant message with 'tool_calls' must be followed by tool messages";
    const ids: string[] = (message.tool_calls ?? []).map((call: any) => call.id);
    for (const id of ids) {
      // HKUDS/nanobot#4473
      if (used.has(id)) return `Duplicate value for 'tool_call_id' of ${id}`;
      if (id.length > 40) return "string too long. Expected a string with maximum length 40";
      used.add(id);
    }
    open = new Set(ids);
  }
  return undefined;
};

/** block/goose#5998, kibitz#87, earendil-works/pi#3365: a message must say something, or call a tool. */
const said: Rule = ({ messages }) =>
  messages.some(({ content, tool_calls }: any) => (typeof content === "string" ? content.trim() === "" : !content && !tool_calls))
    ? "messages: content must not be empty"
    : undefined;

/** deepseek-ai/DeepSeek-V3#1376, can1357/oh-my-pi#1077 */
function forcedWhileThinking(message: string): Rule {
  return ({ tool_choice: choice, thinking }) =>
    (choice === "required" || typeof choice === "object") && thinking?.type !== "disabled" ? message : undefined;
}

const REFUSALS = {
  openai: [published, paired, said],
  mistral: [
    published,
    paired,
    said,
    ({ user }) => (user === undefined ? undefined : "Extra inputs are not permitted: user"),
    ({ messages }) =>
      messages.some(({ role }: any, at: number) => role === "user" && messages[at - 1]?.role === "tool")
        ? "Unexpected role 'user' after role 'tool'"
        : undefined,
    // crewAIInc/crewAI#2194
    ({ messages }) =>
      messages.at(-1).role === "assistant"
        ? "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        : undefined,
    ({ messages }) =>
      messages.some(({ tool_calls = [] }: any) => tool_calls.some(({ id }: any) => !/^[a-zA-Z0-9]{9}$/.test(id)))
        ? "Tool call id must be a-z, A-Z, 0-9, with a length of 9."
        : undefined,
  ],
  deepseek: [
    published,
    paired,
    ({ messages }) =>
      messages.some(({ tool_calls, reasoning_content }: any) => tool_calls && reasoning_content === undefined)
        ? "The reasoning_content in the thinking mode must be passed back to the API."
        : undefined,
    forcedWhileThinking("Thinking mode does not support this tool_choice"),
    // ItzCrazyKns/Vane#969
    ({ response_format: format }) =>
      format?.type === "json_schema" ? "This response_format type is unavailable now" : undefined,
  ],
  /** ai.google.dev/gemini-api/docs/thought-signatures; musistudio/claude-code-router#1431. */
  google: [
    published,
    paired,
    // google-gemini/gemini-cli#11814, odysseus-dev/odysseus#837
    ({ messages }) => {
      const spoken = messages.filter(({ role }: any) => role !== "system");
      if (spoken.some(({ tool_calls, content }: any) => tool_calls && content === "")) return "content must not be empty";
      return spoken.some(({ tool_calls }: any, at: number) => tool_calls && !["user", "tool"].includes(spoken[at - 1]?.role))
        ? "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
        : undefined;
    },
    // Wei-Shaw/sub2api#5506, zed-extensions/mcp-server-brave-search#12, nanbingxyz/5ire#42
    ({ tools = [] }) => {
      const unknown = tools
        .flatMap(({ function: named }: any) => schemasOf(named.parameters))
        .flatMap((schema: any) => Object.keys(schema))
        .find((key: string) => ["exclusiveMinimum", "const", "$ref", "$defs", "oneOf", "additionalProperties"].includes(key));
      return unknown && `Invalid JSON payload received. Unknown name "${unknown}" at 'tools[0].function_declarations[0]'`;
    },
    ({ messages }) => {
      const steps = messages.flatMap(({ tool_calls }: any) => (tool_calls ? [tool_calls] : []));
      const signatures = steps.map(([first]: any) => first.extra_content?.google?.thought_signature);
      if (signatures.includes(undefined)) return "Function call is missing a thought_signature in functionCall parts.";
      const isKnown = (each: string) => each === "skip_thought_signature_validator" || each.startsWith("signed/");
      return signatures.every(isKnown) ? undefined : "Thought signature is not valid.";
    },
  ],
  kimi: [
    published,
    paired,
    // mastra-ai/mastra#12592
    ({ messages }) => {
      const at = messages.findIndex(({ tool_calls, reasoning_content }: any) => tool_calls && reasoning_content === undefined);
      return at === -1
        ? undefined
        : `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${at}`;
    },
    // MoonshotAI/kimi-code#2661
    ({ tools = [] }) =>
      tools.flatMap(({ function: named }: any) => schemasOf(named.parameters)).some(({ type, anyOf }: any) => type && anyOf)
        ? "when using anyOf, type should be defined in anyOf items instead of the parent schema"
        : undefined,
    forcedWhileThinking("tool_choice 'specified' is incompatible with thinking enabled"),
    // HKUDS/nanobot#3939
    ({ thinking, reasoning_effort: effort }) =>
      thinking && effort ? "cannot specify both 'thinking' and 'reasoning_effort'" : undefined,
    // MoonshotAI/kimi-cli#1773
    ({ tools = [] }) =>
      tools.some(({ function: { name } }: any) => !/^[a-zA-Z]/.test(name))
        ? "function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes"
        : undefined,
  ],
  /** perplexityai/api-discussion#265, pipecat-ai/pipecat#4009 */
  perplexity: [
    ({ messages }) => {
      const spoken = messages.filter(({ role }: any) => role !== "system");
      if (spoken.some(({ role }: any, at: number) => role === spoken[at - 1]?.role))
        return "After the (optional) system message(s), user and assistant roles should be alternating.";
      return spoken.at(-1)?.role === "assistant" ? "Last message must have role `user`." : undefined;
    },
  ],
  lmstudio: [
    // lmstudio-ai/lmstudio-bug-tracker#261, pydantic/pydantic-ai#5206
    ({ messages }) =>
      messages.some(({ content }: any) => typeof content !== "string" && !Array.isArray(content))
        ? "Invalid 'content': 'content' field must be a string or an array of objects."
        : undefined,
    ({ tool_choice: choice }) =>
      typeof choice === "object"
        ? "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
        : undefined,
  ],
  cerebras: [
    ({ messages }) => {
      const at = messages.findIndex((message: any) => "reasoning_content" in message);
      return at === -1 ? undefined : `property 'messages.${at}.assistant.reasoning_content' is unsupported`;
    },
  ],
  /** The template of Qwen and others, as vLLM and Ollama apply it: ollama/ollama#17774, BerriAI/litellm#39852. */
  template: [
    paired,
    ({ messages }) => {
      // vllm-project/vllm#36432
      if (!messages.some(({ role }: any) => role === "user")) return "No user query found in messages.";
      const turns = messages.filter(({ role }: any) => role !== "tool");
      if (turns.some(({ role }: any, at: number) => role === "system" && at > 0))
        return "System message must be at the beginning.";
      const spoken = turns.filter(({ role, tool_calls }: any) => role !== "system" && !tool_calls);
      const isTwice = spoken.some(
        ({ role }: any, at: number) => role === "user" && spoken[at - 1]?.role === "user" && isNext(messages, spoken, at),
      );
      return isTwice ? "Conversation roles must alternate user/assistant/user/assistant/..." : undefined;
    },
  ],
  /** docs.anthropic.com/en/api/messages, and the errors in anthropics/claude-code#56174. */
  anthropic: [
    // danny-avila/LibreChat#13162
    ({ tools = [] }) => (twice(tools.map(({ name }: any) => name)) ? "tools: Tool names must be unique." : undefined),
    // tghamm/Anthropic.SDK#50
    (body) => {
      const marks = JSON.stringify(body).split('"cache_control":{').length - 1;
      return marks > 4 ? `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.` : undefined;
    },
    // langgenius/dify#17545
    ({ tools = [], messages }) =>
      tools.length === 0 && JSON.stringify(messages).includes('"tool_use"')
        ? "Requests which include `tool_use` or `tool_result` blocks must define tools."
        : undefined,
    // kintone/mcp-server#553, openclaw/openclaw#29416
    ({ tools = [] }) =>
      tools
        .flatMap(({ input_schema }: any) => schemasOf(input_schema))
        .some(
          (schema: any) =>
            Array.isArray(schema.items) ||
            typeof schema.exclusiveMinimum === "boolean" ||
            typeof schema.required === "boolean" ||
            schema.type === "any" ||
            "patternProperties" in schema,
        )
        ? "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"
        : undefined,
    // anthropics/claude-code#49720
    ({ messages }) => {
      const blocks = messages.flatMap(({ content }: any) => (Array.isArray(content) ? content : []));
      const images = blocks.filter(({ type, source }: any) => type === "image" && source.media_type === "image/png");
      const widths = images.map(({ source }: any) => Buffer.from(source.data, "base64").readUInt32BE(16));
      return widths.length > 20 && Math.max(...widths) > 2_000
        ? "image dimensions exceed max allowed size for many-image requests: 2000 pixels"
        : undefined;
    },
    // BerriAI/litellm#35808, platform.claude.com/docs, Structured outputs
    ({ output_config }) => {
      const schemas = schemasOf(output_config?.format?.schema);
      if (schemas.some(({ type, additionalProperties }) => type === "object" && additionalProperties !== false))
        return "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false";
      return schemas.some((schema) => "minimum" in schema || "maxLength" in schema)
        ? "output_config.format.schema: property 'minimum' is not supported"
        : undefined;
    },
    ({ messages }) => {
      const isBlank = (block: any) => block.type === "text" && block.text.trim() === "";
      const isEmpty = messages.some(({ content }: any) =>
        typeof content === "string" ? content.trim() === "" : content.length === 0,
      );
      const blocks = messages.flatMap(({ content }: any) => (Array.isArray(content) ? content : []));
      const inside = blocks.flatMap(({ content }: any) => (Array.isArray(content) ? content : []));
      return isEmpty || [...blocks, ...inside].some(isBlank)
        ? "messages: text content blocks must contain non-whitespace text"
        : undefined;
    },
    ({ tools = [] }) =>
      tools.some(({ input_schema }: any) => ["anyOf", "oneOf", "allOf"].some((key) => key in input_schema))
        ? "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        : undefined,
    ({ tools = [], messages }) => {
      const blocks = messages.flatMap(({ content }: any) => (Array.isArray(content) ? content : []));
      const uses = blocks.filter(({ type }: any) => type === "tool_use");
      if ([...tools, ...uses].some(({ name }: any) => !/^[a-zA-Z0-9_-]{1,128}$/.test(name)))
        return "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
      if (uses.some(({ id }: any) => !/^[a-zA-Z0-9_-]+$/.test(id)))
        return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'";
      if (new Set(uses.map(({ id }: any) => id)).size < uses.length) return "messages: `tool_use` ids must be unique";
      const answered = blocks.filter(({ type }: any) => type === "tool_result").map((each: any) => each.tool_use_id);
      return uses.every(({ id }: any) => answered.includes(id))
        ? undefined
        : "`tool_use` ids were found without `tool_result` blocks";
    },
  ],
} satisfies Readonly<Record<string, readonly Rule[]>>;

/** Whether two messages of a user stand side by side, with no tool's message between them. */
function isNext(messages: readonly unknown[], spoken: readonly unknown[], at: number): boolean {
  return messages.indexOf(spoken[at]) === messages.indexOf(spoken[at - 1]) + 1;
}
