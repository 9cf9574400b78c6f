import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  chatUsage,
  mergeUsage,
  messagesDeltaUsage,
  messagesUsage,
  readChatUsage,
  readMessagesUsage,
} from "../../../core/src/model-protocols/answer/usage.ts";
import type { Usage } from "../../../core/src/model-protocols/model-events.ts";

describe("usage of Chat Completions", () => {
  it.each<readonly [string, object, Usage]>([
    ["prompt_tokens without a cache", { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }, { input: 10, output: 4 }],
    [
      "cached tokens are part of the prompt",
      { prompt_tokens: 10, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 6 } },
      { input: 4, cacheRead: 6, output: 4 },
    ],
    [
      "written tokens too",
      { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 6, cache_write_tokens: 3 } },
      { input: 1, cacheRead: 6, cacheWrite: 3 },
    ],
    [
      "written tokens under another name",
      { prompt_tokens: 10, prompt_tokens_details: { cache_creation_tokens: 3 } },
      { input: 7, cacheWrite: 3 },
    ],
    [
      "hits and misses",
      { prompt_tokens: 10, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 2 },
      { input: 2, cacheRead: 8 },
    ],
    ["cached tokens beside the prompt", { prompt_tokens: 10, cached_tokens: 8 }, { input: 2, cacheRead: 8 }],
    [
      "more cached than prompt is cut down to it",
      { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 9, cache_write_tokens: 2 } },
      { input: 0, cacheRead: 5, cacheWrite: 0 },
    ],
    [
      "reasoning is part of the completion",
      { completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 5 } },
      { output: 9, reasoning: 5 },
    ],
    [
      "reasoning beside the completion, as the total tells",
      { prompt_tokens: 3, completion_tokens: 4, total_tokens: 12, completion_tokens_details: { reasoning_tokens: 5 } },
      { input: 3, output: 9, reasoning: 5 },
    ],
    [
      "reasoning that only the total contains (mozilla-ai/any-llm#1290)",
      { prompt_tokens: 20, completion_tokens: 198, total_tokens: 623 },
      { input: 20, output: 603, reasoning: 405 },
    ],
    [
      "reasoning beside a completion of 0 (router-for-me/CLIProxyAPI#5733)",
      { prompt_tokens: 21, completion_tokens: 0, total_tokens: 81, completion_tokens_details: { reasoning_tokens: 60 } },
      { input: 21, output: 60, reasoning: 60 },
    ],
    [
      "cached tokens that only the total contains are not reasoning",
      { prompt_tokens: 10, completion_tokens: 4, total_tokens: 22, cached_tokens: 8 },
      { input: 2, cacheRead: 8, output: 4 },
    ],
    [
      "more reasoning than completion is cut down to it",
      { completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 5 } },
      { output: 4, reasoning: 4 },
    ],
    ["a part that only the total tells", { completion_tokens: 4, total_tokens: 12 }, { input: 8, output: 4 }],
    [
      "details that are null",
      { prompt_tokens: 1, completion_tokens: 2, prompt_tokens_details: null, completion_tokens_details: null },
      { input: 1, output: 2 },
    ],
    ["counts that are none", { prompt_tokens: -1, completion_tokens: 2.5, total_tokens: "9", cached_tokens: 3 }, {}],
  ])("%s", (_title, given, expected) => {
    expect(readChatUsage(given as never) ?? {}).toEqual(expected);
  });

  it("nothing reported stays nothing", () => {
    for (const value of [undefined, null, {}, [], "3", { prompt_tokens: null }])
      expect(readChatUsage(value as never)).toBeUndefined();
    expect(chatUsage(undefined)).toBeUndefined();
  });

  it("writes only what is known, and a total only of what is", () => {
    expect(chatUsage({ output: 3 })).toEqual({ completion_tokens: 3 });
    expect(chatUsage({ input: 1, cacheRead: 2, cacheWrite: 4, output: 8, reasoning: 5 })).toEqual({
      prompt_tokens: 7,
      completion_tokens: 8,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 5 },
    });
  });
});

describe("usage of Messages", () => {
  it("reads each count from its field", () => {
    const given = {
      input_tokens: 1,
      cache_read_input_tokens: 2,
      cache_creation_input_tokens: 3,
      output_tokens: 4,
      output_tokens_details: { thinking_tokens: 2 },
    };
    expect(readMessagesUsage(given)).toEqual({ input: 1, cacheRead: 2, cacheWrite: 3, output: 4, reasoning: 2 });
    expect(readMessagesUsage({ input_tokens: null, output_tokens: 4 })).toEqual({ output: 4 });
    for (const value of [undefined, null, {}, []]) expect(readMessagesUsage(value as never)).toBeUndefined();
  });

  it("writes the two required counts as 0 and no other where nothing was reported", () => {
    expect(messagesUsage(undefined)).toEqual({ input_tokens: 0, output_tokens: 0 });
    expect(messagesDeltaUsage(undefined)).toEqual({ output_tokens: 0 });
  });
});

describe("usage in general", () => {
  const count = fc.option(fc.nat(1_000_000), { nil: undefined });
  const reported = fc.record({
    input: fc.nat(1_000_000),
    output: fc.nat(1_000_000),
    cacheRead: count,
    cacheWrite: count,
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const usages = reported.map(({ part, ...usage }): Usage => ({ ...usage, reasoning: Math.floor(usage.output * part) }));

  it("keeps every count on the way through either protocol", () => {
    fc.assert(
      fc.property(usages, (usage) => {
        expect(readChatUsage(chatUsage(usage))).toEqual(usage);
        expect(readMessagesUsage(messagesUsage(usage))).toEqual(usage);
        const { prompt_tokens, completion_tokens, total_tokens } = chatUsage(usage) as Record<string, number>;
        expect(prompt_tokens).toBe((usage.input ?? 0) + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0));
        expect(total_tokens).toBe((prompt_tokens ?? 0) + (completion_tokens ?? 0));
      }),
    );
  });

  it("is never negative and never more than the prompt, for any report of a vendor", () => {
    const value = fc.oneof(fc.integer({ min: -5, max: 50 }), fc.constantFrom(null, undefined, "7", 1.5, Number.NaN));
    const details = fc.option(fc.record({ cached_tokens: value, cache_write_tokens: value }), { nil: null });
    const given = fc.record({
      prompt_tokens: value,
      completion_tokens: value,
      total_tokens: value,
      prompt_tokens_details: details,
      completion_tokens_details: fc.option(fc.record({ reasoning_tokens: value }), { nil: null }),
    });
    fc.assert(
      fc.property(given, (report) => {
        const usage = readChatUsage(report as never) ?? {};
        for (const part of Object.values(usage)) expect(part === undefined || (Number.isInteger(part) && part >= 0)).toBe(true);
        if (usage.reasoning !== undefined) expect(usage.reasoning).toBeLessThanOrEqual(usage.output ?? -1);
        const prompt = report.prompt_tokens;
        if (typeof prompt === "number" && Number.isInteger(prompt) && prompt >= 0) {
          expect((usage.input ?? 0) + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0)).toBe(prompt);
        }
      }),
    );
  });

  it("what was reported last holds, count by count", () => {
    expect(mergeUsage({ input: 1, output: 1 }, { output: 5 })).toEqual({ input: 1, output: 5 });
    // envoyproxy/ai-gateway#1631
    expect(mergeUsage({ input: 15, output: 1 }, { input: 0, output: 5 })).toEqual({ input: 15, output: 5 });
    expect(mergeUsage({ output: 1 }, { input: 0, output: 5 })).toEqual({ input: 0, output: 5 });
    expect(mergeUsage(undefined, { output: 5 })).toEqual({ output: 5 });
    expect(mergeUsage({ input: 1 }, undefined)).toEqual({ input: 1 });
    expect(mergeUsage(undefined, undefined)).toBeUndefined();
  });
});
