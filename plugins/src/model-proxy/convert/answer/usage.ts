import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import type { Usage } from "../model-events.ts";

/**
 * The usage of a Chat Completions answer, whose `prompt_tokens` include what a cache gave or took. Undefined where it reports
 * nothing; counts that are no whole numbers from 0 up count as not reported, and parts larger than their whole are cut down to
 * it.
 */
export function readChatUsage(value: Json | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined;
  const promptDetails = objectOr(value.prompt_tokens_details);
  const total = count(value.total_tokens);
  const completion = count(value.completion_tokens);
  const prompt = count(value.prompt_tokens) ?? difference(total, completion);
  const read = count(promptDetails.cached_tokens) ?? count(value.prompt_cache_hit_tokens) ?? count(value.cached_tokens);
  const written = count(promptDetails.cache_write_tokens) ?? count(promptDetails.cache_creation_tokens);
  const reasoning = count(objectOr(value.completion_tokens_details).reasoning_tokens);

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

/** The usage of a Messages answer or of one of its stream's events, whose `input_tokens` are what no cache gave or took. */
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

/** `usage` of Chat Completions: only what is known, and nothing at all where nothing is. */
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
 * `usage` of Messages. Its type requires both counts, so an unknown one is written as 0; a real answer never has 0 of both,
 * and every other count stays away until it was reported (4.1: missing usage is not zero consumption).
 */
export function messagesUsage(usage: Usage | undefined): JsonObject {
  return { input_tokens: usage?.input ?? 0, ...messagesDeltaUsage(usage) };
}

/** `usage` of a Messages stream's last event: the totals, of which the type requires the output alone. */
export function messagesDeltaUsage(usage: Usage | undefined): JsonObject {
  return {
    ...(usage?.input !== undefined && { input_tokens: usage.input }),
    ...(usage?.cacheWrite !== undefined && { cache_creation_input_tokens: usage.cacheWrite }),
    ...(usage?.cacheRead !== undefined && { cache_read_input_tokens: usage.cacheRead }),
    output_tokens: usage?.output ?? 0,
    ...(usage?.reasoning !== undefined && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
  };
}

/** Counts of one answer are cumulative in both protocols: what was reported last holds, field by field. */
export function mergeUsage(earlier: Usage | undefined, later: Usage | undefined): Usage | undefined {
  if (earlier === undefined || later === undefined) return later ?? earlier;
  return {
    input: later.input ?? earlier.input,
    cacheRead: later.cacheRead ?? earlier.cacheRead,
    cacheWrite: later.cacheWrite ?? earlier.cacheWrite,
    output: later.output ?? earlier.output,
    reasoning: later.reasoning ?? earlier.reasoning,
  };
}

/** Some vendors leave reasoning out of `completion_tokens` and count it in the total alone; everybody else includes it. */
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
