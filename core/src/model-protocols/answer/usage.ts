import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { Usage } from "../model-events.ts";

/**
 * The usage of a Chat Completions answer. Its `prompt_tokens` include tokens that were read from or written to a cache. Undefined if
 * it reports nothing. Counts that are not whole numbers from 0 up count as not reported. A part that is larger than its total is reduced
 * to the total.
 */
export function readChatUsage(value: Json | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined;
  const promptDetails = objectOr(value.prompt_tokens_details);
  const total = count(value.total_tokens);
  const completion = count(value.completion_tokens);
  const prompt = count(value.prompt_tokens) ?? difference(total, completion);
  const read = count(promptDetails.cached_tokens) ?? count(value.prompt_cache_hit_tokens) ?? count(value.cached_tokens);
  const written = count(promptDetails.cache_write_tokens) ?? count(promptDetails.cache_creation_tokens);
  const reasoning =
    count(objectOr(value.completion_tokens_details).reasoning_tokens) ?? uncounted(prompt, completion, total, read);

  const cacheRead = atMost(read, prompt);
  const cacheWrite = atMost(written, difference(prompt, cacheRead ?? 0));
  const output = inclusiveOutput(prompt, completion, reasoning, total);
  return orNothing({
    input: prompt === undefined ? undefined : prompt - (cacheRead ?? 0) - (cacheWrite ?? 0),
    cacheRead,
    cacheWrite,
    output,
    reasoning: atMost(reasoning, output),
  });
}

/** The usage of a Messages answer or of an event of its stream. Its `input_tokens` exclude tokens that were read from or written to a cache. */
export function readMessagesUsage(value: Json | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined;
  return orNothing({
    input: count(value.input_tokens),
    cacheRead: count(value.cache_read_input_tokens),
    cacheWrite: count(value.cache_creation_input_tokens),
    output: count(value.output_tokens),
    reasoning: count(objectOr(value.output_tokens_details).thinking_tokens),
  });
}

/** `usage` of Chat Completions with the known counts; undefined if no count is known. */
export function chatUsage(usage: Usage | undefined): JsonObject | undefined {
  if (usage === undefined) return undefined;
  const { input, cacheRead, cacheWrite, output, reasoning } = usage;
  const prompt = input === undefined ? undefined : input + (cacheRead ?? 0) + (cacheWrite ?? 0);
  return {
    ...(prompt !== undefined && { prompt_tokens: prompt }),
    ...(output !== undefined && { completion_tokens: output }),
    ...(prompt !== undefined && output !== undefined && { total_tokens: prompt + output }),
    ...((cacheRead !== undefined || cacheWrite !== undefined) && {
      prompt_tokens_details: {
        ...(cacheRead !== undefined && { cached_tokens: cacheRead }),
        ...(cacheWrite !== undefined && { cache_write_tokens: cacheWrite }),
      },
    }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

/**
 * `usage` of Messages. Its type requires both counts, so an unknown count is written as 0. In real answers the two are never both 0.
 * Other counts are left out until they are reported (4.1: missing usage is not zero consumption).
 */
export function messagesUsage(usage: Usage | undefined): JsonObject {
  return { input_tokens: usage?.input ?? 0, ...messagesDeltaUsage(usage) };
}

/** `usage` of a Messages stream's last event: the totals. The type requires only the output count. */
export function messagesDeltaUsage(usage: Usage | undefined): JsonObject {
  return {
    ...(usage?.input !== undefined && { input_tokens: usage.input }),
    ...(usage?.cacheWrite !== undefined && { cache_creation_input_tokens: usage.cacheWrite }),
    ...(usage?.cacheRead !== undefined && { cache_read_input_tokens: usage.cacheRead }),
    output_tokens: usage?.output ?? 0,
    ...(usage?.reasoning !== undefined && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
  };
}

/**
 * Counts of one answer are cumulative in both protocols, so the last reported value of each field is used. A later 0 is no count: servers
 * repeat counts at the end that they report at the beginning alone (envoyproxy/ai-gateway#1631).
 */
export function mergeUsage(earlier: Usage | undefined, later: Usage | undefined): Usage | undefined {
  if (earlier === undefined || later === undefined) return later ?? earlier;
  const latest = (field: keyof Usage) => later[field] || (earlier[field] ?? later[field]);
  return {
    input: latest("input"),
    cacheRead: latest("cacheRead"),
    cacheWrite: latest("cacheWrite"),
    output: latest("output"),
    reasoning: latest("reasoning"),
  };
}

/**
 * Tokens that only the total contains. They are reasoning, which Gemini counts there alone (mozilla-ai/any-llm#1290), unless a vendor excludes
 * just the cached tokens from its prompt.
 */
function uncounted(prompt?: number, completion?: number, total?: number, cached?: number): number | undefined {
  if (prompt === undefined || completion === undefined || total === undefined) return undefined;
  const more = total - prompt - completion;
  return more > 0 && more !== cached ? more : undefined;
}

/** Some vendors exclude reasoning from `completion_tokens` and include it only in the total. Other vendors include it in both. */
function inclusiveOutput(prompt?: number, completion?: number, reasoning?: number, total?: number): number | undefined {
  if (completion === undefined) return difference(total, prompt);
  const separate = prompt !== undefined && reasoning !== undefined && total === prompt + completion + reasoning;
  return separate ? completion + reasoning : completion;
}

function orNothing(usage: Usage): Usage | undefined {
  return Object.values(usage).every((value) => value === undefined) ? undefined : usage;
}

function count(value: Json | undefined): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

function objectOr(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function difference(whole: number | undefined, part: number | undefined): number | undefined {
  return whole === undefined || part === undefined ? undefined : Math.max(0, whole - part);
}

function atMost(part: number | undefined, whole: number | undefined): number | undefined {
  return part === undefined || whole === undefined ? undefined : Math.min(part, whole);
}
