import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";

const MODELS = [
  "claude-haiku-4-5-20251001",
  "claude-sonnet-4-5",
  "claude-opus-4-1",
  "claude-opus-4-6",
  "anthropic/claude-opus-4.7",
  "eu.anthropic.claude-sonnet-4-6-v1:0",
  "claude-3-5-haiku-latest",
  "claude-sonnet-4-20250514",
  "house-model",
];

describe("a converted request for a model of Messages", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;
  beforeAll(async () => {
    upstream = await startFakeUpstream({ models: MODELS });
    proxy = await startProxy({ providers: [{ protocol: "messages", upstream, id: "main", models: MODELS }] });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });
  const ask = async (model: string, more: object) => {
    const reply = await proxy.post("/v1/chat/completions", CALLERS["chat-completions"].request("hello", { model, ...more }));
    const text = await reply.text();
    expect([reply.status, text]).toEqual([200, expect.any(String)]);
    return { dropped: reply.headers["x-portico-dropped"], sent: JSON.parse(await (await upstream.request()).text()) };
  };

  it.each([
    ["claude-opus-4-6", { type: "adaptive" }, "high"],
    ["anthropic/claude-opus-4.7", { type: "adaptive" }, "high"],
    ["eu.anthropic.claude-sonnet-4-6-v1:0", { type: "adaptive" }, "high"],
    ["house-model", { type: "adaptive" }, "high"],
    ["claude-haiku-4-5-20251001", { type: "enabled", budget_tokens: 16_000 }, undefined],
    ["claude-sonnet-4-5", { type: "enabled", budget_tokens: 16_000 }, undefined],
    ["claude-sonnet-4-20250514", { type: "enabled", budget_tokens: 16_000 }, undefined],
    ["claude-3-5-haiku-latest", undefined, undefined],
  ])("thinks as %s can (pensarai/apex#890, handochan/aelix-ai#258)", async (model, thinking, effort) => {
    const { sent } = await ask(model, { reasoning_effort: "high", max_tokens: 32_000 });
    expect([sent.thinking, sent.output_config?.effort]).toEqual([thinking, effort]);
  });

  it("does not think by tokens with a forced tool, or if the limit is low", async () => {
    const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
    const forced = await ask("claude-sonnet-4-5", { reasoning_effort: "low", tools: [tool], tool_choice: "required" });
    expect([forced.sent.thinking, forced.dropped]).toEqual([undefined, "thinking"]);
    upstream.reset();
    expect((await ask("claude-sonnet-4-5", { reasoning_effort: "low", max_tokens: 1_000 })).sent.thinking).toBeUndefined();
  });

  it.each([
    ["house-model", ["temperature", "top_p"]],
    ["claude-sonnet-4-5", ["temperature"]],
    ["claude-opus-4-1", ["temperature"]],
    ["claude-opus-4-6", ["temperature"]],
    ["anthropic/claude-opus-4.7", []],
    ["eu.anthropic.claude-sonnet-4-6-v1:0", []],
  ])("samples as %s can (SalesforceAIResearch/MCP-Universe#49, anomalyco/models.dev#1468)", async (model, fields) => {
    const { sent } = await ask(model, { temperature: 0.5, top_p: 0.5 });
    expect(["temperature", "top_p"].filter((field) => field in sent)).toEqual(fields);
  });

  it("does not end with the beginning of the answer, for models that refuse it", async () => {
    const messages = [
      { role: "user", content: "a list" },
      { role: "assistant", content: "1." },
    ];
    expect((await ask("house-model", { messages })).sent.messages).toHaveLength(2);
    upstream.reset();
    expect((await ask("claude-opus-4-6", { messages })).sent.messages.at(-1)).toEqual({ role: "user", content: "(continue)" });
  });

  it("has at most the limit of the model", async () => {
    expect((await ask("claude-3-5-haiku-latest", { max_tokens: 100_000 })).sent.max_tokens).toBe(8_192);
  });

  it.each([
    ["the type of its bytes", "image/jpeg", PNG(1, 1), "image/png"],
    ["a note in place of another type", "image/png", Buffer.from("<svg/>").toString("base64"), undefined],
    ["a note in place of too many pixels", "image/png", PNG(9_000, 10), undefined],
    ["a note in place of too many bytes", "image/png", PNG(10, 10) + "A".repeat(7_200_000), undefined],
  ])("an image has %s (BerriAI/litellm#24900, anthropics/claude-code#28279)", async (_, type, data, expected) => {
    const content = [
      { type: "image_url", image_url: { url: `data:${type};base64,${data}` } },
      { type: "text", text: "?" },
    ];
    const { sent, dropped } = await ask("house-model", { messages: [{ role: "user", content }] });
    const [part] = sent.messages[0].content;
    expect(part.source?.media_type).toBe(expected);
    if (expected === undefined)
      expect([part.text, dropped]).toEqual([expect.stringContaining("an image"), "messages.content.image"]);
  });
});

/** The beginning of a PNG of this size. */
function PNG(width: number, height: number): string {
  const head = Buffer.alloc(33);
  Buffer.from("89504e470d0a1a0a0000000d49484452", "hex").copy(head);
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return head.toString("base64");
}
