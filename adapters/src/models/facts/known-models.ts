import type { KnownRule } from "./known-vendors.ts";

/** Models of one line that differ from the published protocols, with each vendor that serves them. */
export interface KnownModels {
  /** What the documents call them. */
  readonly name: string;
  readonly isOne: (model: string) => boolean;
  readonly rules: readonly KnownRule[];
}

/** The line and the version of a Claude model. */
interface Claude {
  readonly line: string;
  /** 4.6 is 46. */
  readonly version: number;
}

/**
 * Reads `claude-opus-4-6`, `claude-sonnet-4-5-20250929`, `claude-3-7-sonnet-latest`, and the names of gateways and clouds such as
 * `anthropic/claude-opus-4.7` and `eu.anthropic.claude-haiku-4-5-20251001-v1:0`.
 */
function claudeOf(model: string): Claude | undefined {
  const name = model.slice(0, 256).toLowerCase();
  const line = /opus|sonnet|haiku|fable|mythos/.exec(name)?.[0];
  if (line === undefined || !name.includes("claude")) return undefined;
  const after = /(?:opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?!\d)(?:[-.](\d)(?!\d))?/.exec(name);
  const before = /claude-(\d{1,2})(?:[-.](\d))?-(?:opus|sonnet|haiku|fable|mythos)/.exec(name);
  const [, major, minor = "0"] = after ?? before ?? [];
  return major === undefined ? undefined : { line, version: Number(major) * 10 + Number(minor) };
}

/** From which version on a line has something. */
function claudeFrom(from: Readonly<Record<string, number>>, until: Readonly<Record<string, number>> = {}) {
  return (model: string): boolean => {
    const claude = claudeOf(model);
    if (!claude) return false;
    const { line, version } = claude;
    return version >= (from[line] ?? from["other"] ?? Infinity) && version < (until[line] ?? until["other"] ?? Infinity);
  };
}

const ADAPTIVE = { opus: 46, sonnet: 46, other: 50 };
const NO_SAMPLING = { opus: 47, sonnet: 46, other: 50 };

/** A version of GPT, such as 5.4, also behind a gateway: `openai/gpt-5.4-mini`. */
function gptVersion(model: string): number | undefined {
  const found = /(?:^|\/)gpt-(\d)(?:\.(\d))?(?![\d.])/.exec(model.slice(0, 256).toLowerCase());
  return found ? Number(found[1]) * 10 + Number(found[2] ?? 0) : undefined;
}

function isReasoningGpt(model: string): boolean {
  const isChat = /gpt-5[\d.]*-chat/.test(model);
  return ((gptVersion(model) ?? 0) >= 50 && !isChat) || /(?:^|\/)o[134](?:-|$)/.test(model.toLowerCase());
}

/** What models are known to take. Where two rules speak of one thing, the later one holds. */
export const KNOWN_MODELS: readonly KnownModels[] = [
  {
    name: "Claude 3 and 3.5",
    isOne: claudeFrom({ other: 30 }, { other: 37 }),
    rules: [
      {
        messages: { thinking: "none" },
        because: "cannot think before they answer",
        source: "platform.claude.com/docs, Extended thinking",
      },
    ],
  },
  {
    name: "Claude before Opus 4.6 and Sonnet 4.6, Haiku 4.5",
    isOne: claudeFrom({ other: 37 }, ADAPTIVE),
    rules: [
      {
        messages: { thinking: "budget" },
        because: '400 "adaptive thinking is not supported on this model"',
        source: "pensarai/apex#890, diegosouzapw/OmniRoute#1563, platform.claude.com/docs, Adaptive thinking",
      },
    ],
  },
  {
    name: "Claude since Opus 4.6 and Sonnet 4.6",
    isOne: claudeFrom(ADAPTIVE),
    rules: [
      {
        messages: { thinking: "adaptive" },
        because: '400 "thinking.type.enabled is not supported for this model", or deprecated',
        source: "handochan/aelix-ai#258, google/adk-docs#2241",
      },
      {
        messages: { prefill: false },
        because: '400 "This model does not support assistant message prefill"',
        source: "platform.claude.com/docs, What's new in Claude 4.6",
      },
    ],
  },
  {
    name: "Claude since Opus 4.1 and Sonnet 4.5",
    isOne: claudeFrom({ opus: 41, sonnet: 45, haiku: 45, other: 50 }),
    rules: [
      {
        messages: { sampling: "one" },
        because: '400 "`temperature` and `top_p` cannot both be specified for this model"',
        source: "SalesforceAIResearch/MCP-Universe#49, chatboxai/chatbox#2670",
      },
    ],
  },
  {
    name: "Claude since Opus 4.7 and Sonnet 4.6",
    isOne: claudeFrom(NO_SAMPLING),
    rules: [
      {
        messages: { sampling: "none" },
        because: '400 "`temperature` is deprecated for this model"',
        source: "anomalyco/models.dev#1468, The-PR-Agent/pr-agent#2456, dimagi/open-chat-studio#3372",
      },
    ],
  },
  ...(
    [
      ["Claude 3", { other: 30 }, { other: 35 }, 4_096],
      ["Claude 3.5", { other: 35 }, { other: 37 }, 8_192],
      ["Claude Opus 4 and 4.1", { opus: 40 }, { opus: 45 }, 32_000],
      ["Claude 3.7 to 4.5 otherwise", { opus: 45, other: 37 }, ADAPTIVE, 64_000],
      ["Claude since Opus 4.6 and Sonnet 4.6", ADAPTIVE, {}, 128_000],
    ] as const
  ).map(([name, from, until, maxTokens]) => ({
    name,
    isOne: claudeFrom(from, until),
    rules: [
      {
        messages: { maxTokens },
        because: "the longest answer of the model",
        source: "platform.claude.com/docs, Models overview; Effect-TS/effect#7129",
      },
    ],
  })),
  {
    name: "o1, o3, o4 and GPT-5",
    isOne: isReasoningGpt,
    rules: [
      {
        chat: { sampling: false },
        because: "400 \"Unsupported value: 'temperature' does not support 0.5 with this model\"",
        source: "platform.openai.com/docs/guides/reasoning",
      },
    ],
  },
  {
    name: "o3, o4 and GPT-5 to 5.4",
    isOne: (model) => isReasoningGpt(model) && !/(?:^|\/)o1/.test(model.toLowerCase()) && (gptVersion(model) ?? 0) < 55,
    rules: [
      {
        chat: { stop: false },
        because: "400 \"Unsupported parameter: 'stop' is not supported with this model\"; GPT-5.5 takes it",
        source: "huggingface/smolagents#1671, huggingface/smolagents#1893, crewAIInc/crewAI#2738, BerriAI/litellm#28650",
      },
    ],
  },
  {
    name: "Grok 3 mini, Grok 4 and later, Grok Code",
    isOne: (model) => /grok-(?:3-mini|[4-9]|code)/.test(model.slice(0, 256).toLowerCase()),
    rules: [
      {
        chat: { stop: false },
        because: '400 "Argument not supported on this model: stop"',
        source: "BerriAI/litellm#12646, BerriAI/litellm#14565, huggingface/smolagents#1766",
      },
    ],
  },
  {
    name: "Kimi K2.5 and later",
    isOne: (model) => /kimi-(?:k2\.[5-9]|k[3-9]|for-coding)/.test(model.slice(0, 256).toLowerCase()),
    rules: [
      {
        chat: { sampling: false },
        because: '400 "invalid temperature: only 1 is allowed for this model"',
        source: "Warma10032/VideoAdGuard#34, Mai-with-u/MaiBot#1538",
      },
    ],
  },
  {
    name: "GPT-3.5, GPT-4 and their chat models",
    isOne: (model) => /(?:^|\/)(?:gpt-(?:3\.5|4)|chatgpt-|gpt-5[\d.]*-chat)/.test(model.slice(0, 256).toLowerCase()),
    rules: [
      {
        chat: { reasoning: "none" },
        because: '400 "Unrecognized request argument supplied: reasoning_effort"',
        source: "platform.openai.com/docs/guides/reasoning",
      },
    ],
  },
  {
    name: "GPT-5.2 to 5.5",
    isOne: (model) => isReasoningGpt(model) && (gptVersion(model) ?? 0) >= 52 && gptVersion(model)! < 56,
    rules: [
      {
        chat: { effortWithTools: "absent" },
        because: '400 "Function tools with reasoning_effort are not supported … Please use /v1/responses instead"',
        source: "openai/openai-openapi#541, livekit/agents#5088, Science-Discovery/Aether#1026",
      },
    ],
  },
  {
    name: "GPT since 5.6",
    isOne: (model) => isReasoningGpt(model) && (gptVersion(model) ?? 0) >= 56,
    rules: [
      {
        chat: { effortWithTools: "none" },
        because: 'with tools, 400 unless `reasoning_effort` is "none", also if it is absent',
        source: "BerriAI/litellm#34569, danny-avila/LibreChat#14231, livekit/agents#7169",
      },
    ],
  },
];
