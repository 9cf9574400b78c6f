import type { ports } from "@portico/core";

/** One difference of a vendor or a model from the published protocol, with its source. */
export interface KnownRule {
  readonly chat?: Partial<ports.ChatDialect>;
  readonly messages?: Partial<ports.MessagesDialect>;
  readonly images?: false;
  /** The name that is sent is any name, so the `id` in the settings can identify the model. */
  readonly modelBy?: "id";
  /** What the vendor answers otherwise, or what it documents. */
  readonly because: string;
  /** The vendor's page, or reports that quote its answer (`repository#number`). */
  readonly source: string;
}

/** A vendor or server that differs from the published protocols. */
export interface KnownVendor {
  readonly name: string;
  /** Values of a provider's `type`, for servers without a host of their own. */
  readonly types: readonly string[];
  /** Hosts of the vendor's API, each with its subdomains. */
  readonly hosts: readonly string[];
  readonly rules: readonly KnownRule[];
}

/** When the sources were last read. */
export const KNOWN_SINCE = "2026-11-29";

/** Applies the template of the model: one system message at the head, and turns that alternate. */
const templates = (source: string): KnownRule => ({
  chat: { turns: "strict" },
  because: 'templates of models refuse later system messages: "System message must be at the beginning"',
  source,
});

/** What vendors and servers of both protocols are known to take. */
export const KNOWN_VENDORS: readonly KnownVendor[] = [
  {
    name: "OpenAI",
    // Not by type: every compatible service uses that type.
    types: [],
    hosts: ["api.openai.com"],
    rules: [
      {
        chat: { reasoningContent: false },
        because: "its chat completions neither give nor document reasoning text",
        source: "platform.openai.com/docs/api-reference/chat",
      },
    ],
  },
  {
    name: "Azure",
    types: ["azure"],
    hosts: ["openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com", "openai.azure.us", "openai.azure.cn"],
    rules: [
      {
        modelBy: "id",
        because: "the name that is sent is that of a deployment, which its owner chose",
        source: "learn.microsoft.com/azure/ai-foundry/openai/how-to/switching-endpoints",
      },
    ],
  },
  {
    name: "Azure, endpoints of one model",
    types: [],
    hosts: ["models.ai.azure.com", "inference.ai.azure.com"],
    rules: [
      {
        chat: { maxTokens: "max_tokens", reasoning: "none", streamOptions: false, user: false },
        because: "400 \"Extra parameters … are not allowed when extra-parameters is not set or set to be 'error'\"",
        source:
          "learn.microsoft.com/azure/ai-foundry/model-inference/reference/reference-model-inference-chat-completions, BerriAI/litellm#9800, langchain-ai/langchain#29679",
      },
    ],
  },
  {
    name: "Mistral",
    types: ["mistral"],
    hosts: ["api.mistral.ai"],
    rules: [
      {
        chat: { maxTokens: "max_tokens" },
        because: "422 extra_forbidden for max_completion_tokens",
        source: "editor-code-assistant/eca#231",
      },
      {
        chat: { reasoning: "none" },
        because: "most models refuse it, the others take `none` and `high`",
        source: "docs.mistral.ai/capabilities/reasoning, anomalyco/models.dev#1986",
      },
      {
        chat: { streamOptions: false },
        because: "422 extra_forbidden; its streams report usage without being asked",
        source: "cline/cline#582",
      },
      { chat: { reasoningContent: false }, because: "422 extra_forbidden", source: "charmbracelet/crush#1590" },
      { chat: { user: false }, because: "422 extra_forbidden", source: "BerriAI/litellm#3899, danny-avila/LibreChat#1538" },
      {
        chat: { userAfterTool: false },
        because: "400 \"Unexpected role 'user' after role 'tool'\"",
        source: "zed-industries/zed#37021, block/goose#5998",
      },
      {
        chat: { toolIds: "nine" },
        because: '"must be a-z, A-Z, 0-9, with a length of 9"',
        source: "langchain-ai/langchain#37756",
      },
      {
        chat: { prefill: false },
        because: '400 "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"',
        source: "crewAIInc/crewAI#2194, huggingface/smolagents#757",
      },
    ],
  },
  {
    name: "Groq",
    types: ["groq"],
    hosts: ["api.groq.com"],
    rules: [
      {
        chat: { reasoning: "none" },
        because: "some models take `none` and `default` alone, and those without reasoning take nothing",
        source: "earendil-works/pi#1745",
      },
      {
        chat: { reasoningContent: false },
        because: "400 \"property 'reasoning_content' is unsupported\"",
        source: "janhq/jan#8136",
      },
    ],
  },
  {
    name: "DeepSeek",
    types: ["deepseek"],
    hosts: ["api.deepseek.com"],
    rules: [
      { chat: { maxTokens: "max_tokens" }, because: "max_completion_tokens is ignored", source: "earendil-works/pi#8018" },
      {
        chat: { reasoningOfCalls: "required" },
        because: "with thinking on, it refuses a tool call without `reasoning_content`, which may be empty",
        source: "api-docs.deepseek.com/guides/thinking_mode, anomalyco/opencode#24722, earendil-works/pi#4153",
      },
      {
        chat: { thinkingSwitch: "thinking" },
        because: '400 "Thinking mode does not support this tool_choice"; models think without being asked',
        source: "deepseek-ai/DeepSeek-V3#1376, api-docs.deepseek.com/guides/thinking_mode",
      },
      {
        chat: { answerSchema: false },
        because: '400 "This response_format type is unavailable now"',
        source: "BerriAI/litellm#7580, llm-exe/llm-exe#662, ItzCrazyKns/Vane#969",
      },
      {
        images: false,
        because: '400 "unknown variant `image_url`, expected `text`" for each later request of the conversation',
        source: "DayuanJiang/next-ai-draw-io#326, esengine/DeepSeek-Reasonix#6390",
      },
    ],
  },
  {
    name: "Google Gemini",
    types: ["google", "gemini"],
    hosts: ["generativelanguage.googleapis.com"],
    rules: [
      {
        chat: { reasoningContent: false },
        because: '400 "Unknown name …: Cannot find field" for fields that its page does not list',
        source: "ai.google.dev/gemini-api/docs/openai",
      },
      {
        chat: { thoughtSignatures: true },
        because: '400 "Function call is missing a thought_signature"',
        source: "ai.google.dev/gemini-api/docs/thought-signatures, musistudio/claude-code-router#1431, QwenLM/qwen-code#1187",
      },
      {
        chat: { turns: "strict" },
        because:
          '400 "Please ensure that function call turn comes immediately after a user turn or after a function response turn"',
        source: "google-gemini/gemini-cli#11814, lobehub/lobehub#10049",
      },
      {
        chat: { toolSchemas: "google" },
        because: '400 "Unknown name "exclusiveMinimum" at tools: Cannot find field", also "const" and others',
        source: "Wei-Shaw/sub2api#5506, zed-extensions/mcp-server-brave-search#12, nanbingxyz/5ire#42",
      },
    ],
  },
  {
    name: "xAI",
    types: ["xai"],
    hosts: ["api.x.ai"],
    rules: [
      {
        chat: { reasoning: "none" },
        because: "models that think without being asked refuse it",
        source: "docs.x.ai/developers/model-capabilities/text/reasoning",
      },
    ],
  },
  {
    name: "Together",
    types: ["together"],
    hosts: ["api.together.xyz", "api.together.ai"],
    rules: [
      {
        chat: { maxTokens: "max_tokens" },
        because: "its own client library knows max_tokens alone",
        source: "npm together-ai 0.52",
      },
    ],
  },
  {
    name: "OpenRouter",
    types: ["openrouter"],
    hosts: ["openrouter.ai"],
    rules: [
      {
        chat: { cacheMarks: true },
        because: "without `cache_control` on parts of the content, nothing is cached",
        source: "openrouter.ai/docs/features/prompt-caching, anomalyco/opencode#39009",
      },
    ],
  },
  {
    name: "Kimi",
    types: ["kimi", "moonshot"],
    hosts: ["api.kimi.com", "api.moonshot.ai", "api.moonshot.cn"],
    rules: [
      {
        messages: { thinking: "budget" },
        because: "its Messages endpoint refuses adaptive thinking",
        source: "MoonshotAI/kimi-code#1746",
      },
      {
        chat: { reasoningOfCalls: "required" },
        because: '400 "thinking is enabled but reasoning_content is missing in assistant tool call message"',
        source: "mastra-ai/mastra#12592, continuedev/continue#11600, anomalyco/opencode#16318",
      },
      {
        chat: { toolSchemas: "typed" },
        because: '400 "when using anyOf, type should be defined in anyOf items instead of the parent schema"',
        source: "MoonshotAI/kimi-code#2661, openclaw/openclaw#113130",
      },
      {
        chat: { thinkingSwitch: "thinking" },
        because:
          "400 \"tool_choice 'specified' is incompatible with thinking enabled\"; not both `thinking` and `reasoning_effort`",
        source: "can1357/oh-my-pi#1077, HKUDS/nanobot#3939",
      },
    ],
  },
  {
    name: "Cerebras",
    types: ["cerebras"],
    hosts: ["api.cerebras.ai"],
    rules: [
      {
        chat: { reasoningContent: false },
        because: "400 \"property 'messages.2.assistant.reasoning_content' is unsupported\"",
        source: "Kilo-Org/kilocode#10375, QwenLM/qwen-code#11045",
      },
    ],
  },
  {
    name: "Perplexity",
    types: ["perplexity"],
    hosts: ["api.perplexity.ai"],
    rules: [
      {
        chat: { turns: "strict" },
        because: '400 "After the (optional) system message(s), user and assistant roles should be alternating"',
        source: "perplexityai/api-discussion#265, danny-avila/LibreChat#3048",
      },
      {
        chat: { prefill: false },
        because: "the last message must be the user's",
        source: "pipecat-ai/pipecat#4009",
      },
    ],
  },
  {
    name: "DashScope",
    types: ["dashscope", "qwen"],
    hosts: ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
    rules: [
      {
        chat: { thinkingSwitch: "enable_thinking" },
        because: '400 "The tool_choice parameter does not support being set to required or object in thinking mode"',
        source: "cloudwego/eino#994",
      },
    ],
  },
  {
    name: "Ollama",
    types: ["ollama"],
    hosts: ["ollama.com"],
    rules: [
      {
        chat: { maxTokens: "max_tokens" },
        because: "documented as max_tokens; max_completion_tokens is ignored",
        source: "docs.ollama.com/api/openai-compatibility, ollama/ollama#7125",
      },
      {
        chat: { reasoning: "none" },
        because: "a model without that level answers 400, and models that can think do without being asked",
        source: "ollama/ollama#12561, ollama/ollama#14820",
      },
      templates("ollama/ollama#17774"),
      {
        chat: { contentOfCalls: "empty" },
        because: '400 "invalid message content type: <nil>"',
        source: "pydantic/pydantic-ai#5206, SAIL-Research-Lab/cheetahclaws#72",
      },
    ],
  },
  { name: "vLLM", types: ["vllm"], hosts: [], rules: [templates("BerriAI/litellm#39852")] },
  {
    name: "llama.cpp",
    types: ["llamacpp", "llama.cpp", "llama-server"],
    hosts: [],
    rules: [
      {
        chat: { maxTokens: "max_tokens" },
        because: "older servers ignore max_completion_tokens, all take max_tokens",
        source: "ggml-org/llama.cpp#13700",
      },
      templates("gptme/gptme#3779"),
    ],
  },
  {
    name: "LM Studio",
    types: ["lmstudio", "lm-studio"],
    hosts: [],
    rules: [
      {
        chat: { maxTokens: "max_tokens" },
        because: "its list of parameters",
        source: "lmstudio.ai/docs/developer/openai-compat/chat-completions",
      },
      {
        chat: { contentOfCalls: "empty" },
        because: "400 \"Invalid 'content': 'content' field must be a string or an array of objects\"",
        source: "lmstudio-ai/lmstudio-bug-tracker#261",
      },
      {
        chat: { toolChoice: "words" },
        because: "400 \"Invalid tool_choice type: 'object'. Supported string values: none, auto, required\"",
        source: "lmstudio-ai/lmstudio-bug-tracker#670, can1357/llm-git#13",
      },
      templates("ollama/ollama#17774"),
    ],
  },
];

/**
 * What is known of a provider, by the host of `baseUrl`, else by `type`. Of a host that serves models of many vendors under names that its
 * customers choose, both hold: `type` can name the vendor.
 */
export function knownRules({ baseUrl, type }: { readonly baseUrl: string; readonly type: string }): readonly KnownRule[] {
  const host = URL.parse(baseUrl)?.hostname ?? "";
  const name = type.toLowerCase();
  const ofHost = KNOWN_VENDORS.find(({ hosts }) => hosts.some((own) => host === own || host.endsWith(`.${own}`)));
  const ofType = KNOWN_VENDORS.find(({ types }) => types.includes(name));
  if (!ofHost) return ofType?.rules ?? [];
  const isOfMany = ofHost.rules.some(({ modelBy }) => modelBy === "id");
  return isOfMany && ofType && ofType !== ofHost ? [...ofHost.rules, ...ofType.rules] : ofHost.rules;
}
