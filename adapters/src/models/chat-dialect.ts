import { ports } from "@portico/core";
import type { HttpProviderOptions } from "./http-options.ts";

/** A vendor or server whose Chat Completions differ from the published ones. */
interface KnownDialect {
  /** Values of a provider's `type`, for servers without a host of their own. */
  readonly types: readonly string[];
  /** Hosts of the vendor's API, each with its subdomains. */
  readonly hosts: readonly string[];
  readonly differs: Partial<ports.ChatDialect>;
}

/** Each entry with its source: the vendor's documentation, or a report that quotes the vendor's answer. */
const KNOWN: readonly KnownDialect[] = [
  {
    // Not by type: every compatible service uses that type.
    types: [],
    hosts: ["api.openai.com"],
    // Its chat completions neither give nor document reasoning text: platform.openai.com/docs/api-reference/chat.
    differs: { reasoningContent: false },
  },
  {
    types: ["mistral"],
    hosts: ["api.mistral.ai"],
    differs: {
      // 422 extra_forbidden for max_completion_tokens: editor-code-assistant/eca#231.
      maxTokens: "max_tokens",
      // Most models refuse it, the others take `none` and `high`: docs.mistral.ai/capabilities/reasoning, anomalyco/models.dev#1986.
      reasoning: "none",
      // 422 extra_forbidden: cline/cline#582. Its streams report usage without being asked.
      streamOptions: false,
      // 422 extra_forbidden: charmbracelet/crush#1590.
      reasoningContent: false,
      // 422 extra_forbidden: BerriAI/litellm#3899, danny-avila/LibreChat#1538.
      user: false,
      // 400 "Unexpected role 'user' after role 'tool'": zed-industries/zed#37021, block/goose#5998.
      userAfterTool: false,
      // "must be a-z, A-Z, 0-9, with a length of 9": langchain-ai/langchain#37756.
      toolIds: "nine",
    },
  },
  {
    types: ["groq"],
    hosts: ["api.groq.com"],
    differs: {
      // Some models take `none` and `default` alone, and those without reasoning take nothing: earendil-works/pi#1745.
      reasoning: "none",
      // 400 "property 'reasoning_content' is unsupported": janhq/jan#8136.
      reasoningContent: false,
    },
  },
  {
    types: ["deepseek"],
    hosts: ["api.deepseek.com"],
    // max_completion_tokens is ignored: earendil-works/pi#8018. Reasoning must be sent back: api-docs.deepseek.com/guides/thinking_mode.
    // With thinking on, it refuses a tool call without the field: anomalyco/opencode#24722, earendil-works/pi#4153.
    differs: { maxTokens: "max_tokens", reasoningOfCalls: "required" },
  },
  {
    types: ["google", "gemini"],
    hosts: ["generativelanguage.googleapis.com"],
    // 400 'Unknown name …: Cannot find field' for whatever ai.google.dev/gemini-api/docs/openai does not document. 400 "Function call is missing
    // a thought_signature": ai.google.dev/gemini-api/docs/thought-signatures, musistudio/claude-code-router#1431, QwenLM/qwen-code#1187.
    differs: { reasoningContent: false, thoughtSignatures: true },
  },
  {
    types: ["xai"],
    hosts: ["api.x.ai"],
    // Models that think without being asked refuse it: docs.x.ai/developers/model-capabilities/text/reasoning.
    differs: { reasoning: "none" },
  },
  {
    types: ["together"],
    hosts: ["api.together.xyz", "api.together.ai"],
    // Its own client library knows max_tokens alone: npm together-ai 0.52.
    differs: { maxTokens: "max_tokens" },
  },
  // Documents all four: openrouter.ai/docs/use-cases/reasoning-tokens, openrouter.ai/docs/api-reference.
  { types: ["openrouter"], hosts: ["openrouter.ai"], differs: {} },
  {
    types: ["ollama"],
    hosts: ["ollama.com"],
    differs: {
      // Documented as max_tokens; max_completion_tokens is ignored: docs.ollama.com/api/openai-compatibility, ollama/ollama#7125.
      maxTokens: "max_tokens",
      // A model without that level answers 400, and models that can think do without being asked: ollama/ollama#12561, #14820.
      reasoning: "none",
      // Templates of models: ollama/ollama#17774.
      turns: "strict",
    },
  },
  // Both names and reasoning are documented, what it does not know is ignored: docs.vllm.ai, OpenAI-Compatible Server. It applies the template of
  // the model: "System message must be at the beginning" (BerriAI/litellm#39852).
  { types: ["vllm"], hosts: [], differs: { turns: "strict" } },
  // Older servers ignore max_completion_tokens, all take max_tokens: ggml-org/llama.cpp#13700. Templates of models: gptme/gptme#3779.
  { types: ["llamacpp", "llama.cpp", "llama-server"], hosts: [], differs: { maxTokens: "max_tokens", turns: "strict" } },
  // Its list of parameters: lmstudio.ai/docs/developer/openai-compat/chat-completions. It applies the template of the model.
  { types: ["lmstudio", "lm-studio"], hosts: [], differs: { maxTokens: "max_tokens", turns: "strict" } },
];

/**
 * The parts of Chat Completions that a provider supports: by its options, else by its known vendor, else all. The vendor is
 * recognised by the host of `baseUrl`, else by `type`.
 */
export function chatDialect({
  baseUrl,
  type,
  dialect,
}: Pick<HttpProviderOptions, "baseUrl" | "type" | "dialect">): ports.ChatDialect {
  const host = URL.parse(baseUrl)?.hostname ?? "";
  const known = KNOWN.find(({ hosts }) => hosts.some((own) => host === own || host.endsWith(`.${own}`))) ?? byType(type);
  const usual = { ...ports.PUBLISHED_CHAT_DIALECT, ...known?.differs };
  const set = Object.entries(dialect ?? {}).filter(([, value]) => value !== undefined);
  return { ...usual, ...Object.fromEntries(set) };
}

function byType(type: string): KnownDialect | undefined {
  const name = type.toLowerCase();
  return KNOWN.find(({ types }) => types.includes(name));
}
