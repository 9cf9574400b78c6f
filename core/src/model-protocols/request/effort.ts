import type { ChatDialect } from "../../ports/models.ts";
import { THINKING_OFF } from "../fit/fitted-request.ts";
import { effortOfBudget } from "../fit/fit-thinking.ts";
import {
  ConversionRefused,
  type Dropped,
  dropUnknown,
  quoteName,
  readCount,
  readObject,
  readOptional,
  readString,
} from "./fields.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";

/** Effort values with the same name in both protocols. */
const SHARED_EFFORT: ReadonlySet<string> = new Set(["low", "medium", "high", "xhigh", "max"]);
/** The default effort of Messages. */
const MESSAGES_DEFAULT_EFFORT = "high";
const OUTPUT_CONFIG_FIELDS = new Set(["effort", "format"]);
const REASONING_FIELDS = new Set(["effort"]);
const THINKING_FIELDS = new Set(["type", "budget_tokens"]);

/**
 * `thinking` and `output_config.effort` become `reasoning_effort`. An explicit effort has priority over a budget. Thinking without
 * either gets the documented default of Messages. `disabled` sends no effort: only few models support the effort `none`, and other
 * models refuse the request. Providers that do not accept an effort get none.
 */
export function effortToChat(body: JsonObject, chat: JsonObjectDraft, dialect: ChatDialect, dropped: Dropped): void {
  const { reasoning, thinkingSwitch: member } = dialect;
  const { effort, isOff, fields } = readMessagesEffort(body, dropped);
  if (isOff && member !== "none") chat[member] = THINKING_OFF[member];
  else if (effort !== undefined && reasoning === "effort") chat.reasoning_effort = effort;
  else for (const field of fields) dropped.add(field);
}

/** How much a Messages request wants the model to think. */
export interface AskedEffort {
  /** Undefined if the request says nothing, or turns thinking off. */
  readonly effort: string | undefined;
  /** The request turns thinking off. */
  readonly isOff: boolean;
  /** The fields that say so. */
  readonly fields: readonly string[];
}

/** Reads `thinking` and `output_config.effort`. An explicit effort has priority over a budget. */
export function readMessagesEffort(body: JsonObject, dropped: Dropped): AskedEffort {
  const config = readOptional(body.output_config, "output_config", readObject);
  if (config) dropUnknown(config, OUTPUT_CONFIG_FIELDS, "output_config.", dropped);
  const effort = readOptional(config?.effort, "output_config.effort", readSharedEffort);
  const thinking = readOptional(body.thinking, "thinking", readObject);
  return {
    effort: thinking ? effortOfThinking(thinking, effort, dropped) : effort,
    isOff: thinking?.type === "disabled",
    fields: [...(thinking ? ["thinking"] : []), ...(effort === undefined ? [] : ["output_config.effort"])],
  };
}

/** Undefined if thinking is off. */
function effortOfThinking(thinking: JsonObject, effort: string | undefined, dropped: Dropped): string | undefined {
  // `display` changes only how thinking is shown, so it is ignored.
  dropUnknown(thinking, THINKING_FIELDS, "thinking.", dropped);
  const type = readString(thinking.type, "thinking.type");
  switch (type) {
    case "disabled":
      return undefined;
    case "enabled": {
      const budget = readCount(thinking.budget_tokens, "thinking.budget_tokens");
      if (effort !== undefined) dropped.add("thinking.budget_tokens");
      return effort ?? effortOfBudget(budget);
    }
    case "between_tools":
      dropped.add("thinking.type");
      return effort ?? MESSAGES_DEFAULT_EFFORT;
    case "adaptive":
      return effort ?? MESSAGES_DEFAULT_EFFORT;
    default:
      throw new ConversionRefused("thinking.type", `${quoteName(type)} has no counterpart here`);
  }
}

/**
 * `reasoning_effort` (gateways also use `reasoning.effort`) becomes adaptive thinking with that effort. There are three reasons: current
 * models of Messages refuse budgets; adaptive thinking works with any `tool_choice`; and it does not require that earlier turns begin with
 * a thinking block, which callers of Chat Completions rarely keep. `none` switches thinking off. `minimal` becomes `low`, the nearest value.
 * @returns whether thinking is on.
 */
export function effortToMessages(
  body: JsonObject,
  messages: JsonObjectDraft,
  outputConfig: JsonObjectDraft,
  dropped: Dropped,
): boolean {
  const reasoning = readOptional(body.reasoning, "reasoning", readObject);
  if (reasoning) dropUnknown(reasoning, REASONING_FIELDS, "reasoning.", dropped);
  const stated = readOptional(body.reasoning_effort, "reasoning_effort", readChatEffort);
  const nested = readOptional(reasoning?.effort, "reasoning.effort", readChatEffort);
  if (stated !== undefined && nested !== undefined && nested !== stated) dropped.add("reasoning.effort");
  const effort = stated ?? nested;
  if (effort === undefined) return false;
  if (effort === "none") {
    messages.thinking = { type: "disabled" };
    return false;
  }
  messages.thinking = { type: "adaptive" };
  outputConfig.effort = effort;
  return true;
}

/** `minimal` becomes the nearest value of Messages. */
function readChatEffort(value: Json | undefined, path: string): string {
  if (value === "none") return value;
  return value === "minimal" ? "low" : readSharedEffort(value, path);
}

function readSharedEffort(value: Json | undefined, path: string): string {
  if (typeof value !== "string" || !SHARED_EFFORT.has(value)) {
    throw new ConversionRefused(path, `${quoteName(value)} is no effort that both protocols know`);
  }
  return value;
}
