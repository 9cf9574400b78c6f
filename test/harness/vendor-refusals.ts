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
  for (const { function: named } of tools)
    if (["anyOf", "oneOf", "allOf"].some((key) => key in (named.parameters ?? {})))
      return "Invalid schema for function: schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf' at the top level";
  return undefined;
};

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

/** block/goose#5998, kibitz#87: a message of a user must say something. */
const said: Rule = ({ messages }) =>
  messages.some(({ role, content }: any) => role === "user" && typeof content === "string" && content.trim() === "")
    ? "messages: content must not be empty"
    : undefined;

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
  ],
  /** ai.google.dev/gemini-api/docs/thought-signatures; musistudio/claude-code-router#1431. */
  google: [
    published,
    paired,
    ({ messages }) => {
      const steps = messages.flatMap(({ tool_calls }: any) => (tool_calls ? [tool_calls] : []));
      const signatures = steps.map(([first]: any) => first.extra_content?.google?.thought_signature);
      if (signatures.includes(undefined)) return "Function call is missing a thought_signature in functionCall parts.";
      const isKnown = (each: string) => each === "skip_thought_signature_validator" || each.startsWith("signed/");
      return signatures.every(isKnown) ? undefined : "Thought signature is not valid.";
    },
  ],
  /** The template of Qwen and others, as vLLM and Ollama apply it: ollama/ollama#17774, BerriAI/litellm#39852. */
  template: [
    paired,
    ({ messages }) => {
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
