import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import { refusal, toChat, toMessages } from "./converted.ts";

describe("what Messages lacks and the answer depends on is refused, naming the field (open points 2)", () => {
  it.each<[string, JsonObject["x"]]>([
    ["n", 2],
    ["n", 0],
    ["logprobs", true],
    ["top_logprobs", 3],
    ["logit_bias", { "50256": -100 }],
    ["modalities", ["text", "audio"]],
    ["audio", { voice: "alloy", format: "wav" }],
    ["web_search_options", {}],
    ["moderation", { model: "m" }],
  ])("%s: %j", (field, value) => {
    expect(refusal(() => toMessages({ [field]: value })).field).toBe(field);
  });

  it.each<JsonObject>([
    { n: 1, logprobs: false, top_logprobs: 0, logit_bias: {}, modalities: ["text"] },
    { n: null, logprobs: null, top_logprobs: null, logit_bias: null, modalities: null, audio: null, web_search_options: null },
  ])("unless it says nothing: %j", (fields) => {
    const { body, dropped } = toMessages(fields);
    expect(dropped).toEqual([]);
    expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model"]);
  });
});

describe("what Chat Completions lacks and the answer depends on is refused, naming the field", () => {
  it.each<[string, JsonObject["x"]]>([
    ["mcp_servers", [{ type: "url", name: "tickets", url: "https://secret.example" }]],
    ["container", "c1"],
    ["container", { skills: [] }],
    ["inference_geo", "us"],
    ["thread", { id: "t" }],
  ])("%s: %j", (field, value) => {
    const refused = refusal(() => toChat({ [field]: value }));
    expect(refused.field).toBe(field);
    expect(refused.message).not.toContain("secret");
  });

  it("and servers of MCP by their names", () => {
    expect(refusal(() => toChat({ mcp_servers: [{ name: "tickets" }, { name: "b c" }] })).message).toContain(
      '"tickets", this one',
    );
  });

  it("except values without effect", () => {
    expect(toChat({ mcp_servers: [], container: null, inference_geo: "global" }).dropped).toEqual(["inference_geo"]);
  });
});

describe("what keeps the meaning is dropped and named", () => {
  it("towards Messages", () => {
    const fields = ["seed", "store", "service_tier", "prediction", "prompt_cache_key", "verbosity", "metadata", "x_vendor"];
    const { body, dropped } = toMessages(Object.fromEntries(fields.map((field) => [field, { a: 1 }])));
    expect(dropped).toEqual(fields);
    for (const field of fields) expect(body).not.toHaveProperty(field);
  });

  it("towards Chat Completions, so that coding assistants get through", () => {
    const fields = ["service_tier", "context_management", "speed", "diagnostics", "betas", "x_vendor"];
    const { dropped } = toChat(Object.fromEntries(fields.map((field) => [field, { a: 1 }])));
    expect(dropped).toEqual(fields);
  });

  it("null has no effect, so it is not named", () => {
    expect(toMessages({ seed: null, store: null, unknown: null }).dropped).toEqual([]);
    expect(toChat({ service_tier: null, unknown: null }).dropped).toEqual([]);
  });

  it("and a cache mark is named once, wherever it stood", () => {
    const cache_control = { type: "ephemeral" };
    const { body, dropped } = toChat({
      cache_control,
      system: [{ type: "text", text: "s", cache_control }],
      tools: [{ name: "t", input_schema: {}, cache_control }],
      messages: [{ role: "user", content: [{ type: "text", text: "a", cache_control }] }],
    });
    expect(dropped).toEqual(["cache_control"]);
    expect(JSON.stringify(body)).not.toContain("ephemeral");
  });

  it("and a name that could break or flood a header is not repeated", () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`field${index}`, 1]));
    const { dropped } = toMessages({ "a\r\nset-cookie: b": 1, é: 1, "": 1, ["x".repeat(200)]: 1, ...many });
    expect(dropped.length).toBeLessThan(70);
    for (const name of dropped) expect(name).toMatch(/^(\(other\)|[\w.]{1,128})$/);
    expect(dropped[0]).toBe("(other)");
    expect(dropped).toContain("field0");
  });
});

it("the model's name is kept", () => {
  expect(toChat({ model: "vendor/m:1" }).body.model).toBe("vendor/m:1");
  expect(toMessages({ model: "vendor/m:1" }).body.model).toBe("vendor/m:1");
});
