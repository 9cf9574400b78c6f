import { ConversionRefused, convertToResponses, type RefusedPart } from "@portico/core/model-protocols";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { responsesRefusal } from "../../harness/responses-refusals.ts";
import { anyMessagesRequest } from "./any-request.ts";

const OWNER = "0123abcd";
const convert = (body: object, parts: readonly RefusedPart[] = [], owner = OWNER) => {
  const { body: bytes, ...facts } = convertToResponses(Buffer.from(JSON.stringify(body)), owner, { parts, ofModels: new Map() });
  return { ...facts, sent: JSON.parse(Buffer.from(bytes).toString("utf8")) };
};
const ask = (content: unknown, more: object = {}) =>
  convert({ model: "m", max_tokens: 100, messages: [{ role: "user", content }], ...more });
const talk = (messages: readonly object[], more: object = {}) => convert({ model: "m", max_tokens: 100, messages, ...more });
const mark = (value: object, owner = OWNER) => `responses:${owner}:${JSON.stringify(value)}`;
const user = { role: "user", content: "hi" };

describe("a Messages request as a Responses request", () => {
  it("is accepted by the vendor, whatever it says, and is always written in the same way", () => {
    fc.assert(
      fc.property(anyMessagesRequest, (request) => {
        const calls = JSON.stringify(request).includes('"type":"tool_use"');
        const { sent } = convert(request);
        expect(responsesRefusal(sent)).toBeUndefined();
        expect(convert(request).sent).toEqual(sent);
        expect(sent.input.some(({ type }: { type: string }) => type === "function_call")).toBe(calls);
      }),
    );
  });

  it("stores nothing, and asks for encrypted reasoning", () => {
    expect(ask("hello", { system: "be brief" }).sent).toEqual({
      model: "m",
      instructions: "be brief",
      input: [{ type: "message", role: "user", content: "hello" }],
      max_output_tokens: 100,
      store: false,
      include: ["reasoning.encrypted_content"],
    });
  });

  // QuantumNous/new-api#2866
  it("has a limit of at least 16 tokens", () => {
    expect([ask("a", { max_tokens: 1 }), ask("a", { max_tokens: 17 })].map(({ sent }) => sent.max_output_tokens)).toEqual([
      16, 17,
    ]);
  });

  it.each([
    [{ thinking: { type: "adaptive" } }, { effort: "high", summary: "auto" }],
    [{ thinking: { type: "enabled", budget_tokens: 2_000 } }, { effort: "low", summary: "auto" }],
    [
      { thinking: { type: "adaptive" }, output_config: { effort: "max" } },
      { effort: "max", summary: "auto" },
    ],
    [{ thinking: { type: "disabled" } }, { effort: "none" }],
    [{}, undefined],
  ])("asks for reasoning: %j", (more, reasoning) => {
    expect(ask("a", more).sent.reasoning).toEqual(reasoning);
  });

  // 0xPlaygrounds/rig#2477: without `strict` the vendor makes all properties required.
  it("says of each tool whether it is strict, in the flat form, under a name of at most 64 characters", () => {
    const long = "mcp__server__".repeat(8);
    const input_schema = { type: "object", anyOf: [{ properties: { a: { type: "string" } }, required: ["a"] }] };
    const empty = { type: "object", properties: {}, additionalProperties: false };
    const { sent, toolNames } = ask("a", {
      tools: [
        { name: "look", description: "Looks", input_schema: empty, strict: true },
        { name: long, input_schema },
      ],
      tool_choice: { type: "tool", name: long, disable_parallel_tool_use: true },
    });
    const [fitted] = [...toolNames.keys()];
    expect(sent.tools).toEqual([
      { type: "function", name: "look", description: "Looks", parameters: empty, strict: true },
      {
        type: "function",
        name: fitted,
        parameters: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
        strict: false,
      },
    ]);
    expect(fitted).toHaveLength(64);
    expect(toolNames.get(fitted!)).toBe(long);
    expect([sent.tool_choice, sent.parallel_tool_calls]).toEqual([{ type: "function", name: fitted }, false]);
  });

  it("sends no strict tool whose schema the vendor refuses as one, and says so", () => {
    const tool = {
      name: "look",
      strict: true,
      input_schema: { type: "object", properties: { a: {} }, additionalProperties: false },
    };
    const { sent, dropped } = ask("a", { tools: [tool] });
    expect([sent.tools[0].strict, dropped]).toEqual([false, ["tools.strict"]]);
  });

  // BerriAI/litellm#38211
  it("asks for a strict schema only if the schema is one", () => {
    const strict = (schema: object) =>
      ask("a", { output_config: { format: { type: "json_schema", schema } } }).sent.text.format.strict;
    const inner = {
      type: "object",
      properties: { b: { enum: [{ type: "object" }] } },
      required: ["b"],
      additionalProperties: false,
    };
    const of = (more: object) => ({
      type: "object",
      properties: { a: inner },
      required: ["a"],
      additionalProperties: false,
      ...more,
    });
    expect(strict(of({}))).toBe(true);
    expect(strict(of({ required: [] }))).toBe(false);
    expect(strict(of({ additionalProperties: true }))).toBe(false);
    expect(strict(of({ properties: { a: { type: "array", items: { type: "object" } } } }))).toBe(false);
    expect(strict({ type: "object" })).toBe(false);
  });

  it("sends images, PDFs and documents at an address to the model, also as results of tools", () => {
    const data = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
    const image = { type: "image", source: data };
    const { sent } = talk([
      user,
      { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "look", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_1", is_error: true, content: [{ type: "text", text: "half" }, image] },
          { type: "document", source: { type: "url", url: "https://papers.example/a.pdf" } },
          { type: "document", title: "b.pdf", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } },
        ],
      },
    ]);
    const picture = { type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=", detail: "auto" };
    expect(sent.input.slice(2)).toEqual([
      {
        type: "function_call_output",
        call_id: "call_1",
        output: [{ type: "input_text", text: "[tool error]" }, { type: "input_text", text: "half" }, picture],
      },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_file", file_url: "https://papers.example/a.pdf" },
          { type: "input_file", filename: "b.pdf", file_data: "data:application/pdf;base64,JVBERi0=" },
        ],
      },
    ]);
  });

  it("gives reasoning back with the message that followed it, under its id and phase", () => {
    const signature = mark({ id: "rs_1", encrypted: "gAAA", message: { id: "msg_1", phase: "commentary" } });
    const { sent, dropped } = talk([
      user,
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "well", signature },
          { type: "text", text: "Let me see." },
          { type: "redacted_thinking", data: mark({ id: "rs_2", encrypted: "gAAB" }) },
          { type: "tool_use", id: "call_1", name: "look", input: { a: 1 } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "seen" }] },
    ]);
    expect(sent.input.slice(1)).toEqual([
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "well" }], encrypted_content: "gAAA" },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "Let me see.", annotations: [] }],
        phase: "commentary",
      },
      { type: "reasoning", id: "rs_2", summary: [], encrypted_content: "gAAB" },
      { type: "function_call", call_id: "call_1", name: "look", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "call_1", output: "seen" },
    ]);
    expect(dropped).toEqual([]);
  });

  // am17an/llama.cpp#50
  it("gives open reasoning back as text", () => {
    const content = [
      { type: "thinking", thinking: "well", signature: mark({ id: "rs_1" }) },
      { type: "text", text: "so" },
    ];
    expect(talk([user, { role: "assistant", content }, user]).sent.input[1]).toEqual({
      type: "reasoning",
      id: "rs_1",
      summary: [],
      content: [{ type: "reasoning_text", text: "well" }],
    });
  });

  it.each([
    [
      "of another vendor",
      [
        { type: "thinking", thinking: "t", signature: "EqQBCkYIBxgC" },
        { type: "text", text: "a" },
      ],
    ],
    [
      "of another provider",
      [
        { type: "redacted_thinking", data: mark({ id: "rs_1", encrypted: "e" }, "ffff") },
        { type: "text", text: "a" },
      ],
    ],
    [
      "without a signature",
      [
        { type: "thinking", thinking: "t", signature: "" },
        { type: "text", text: "a" },
      ],
    ],
    [
      "with a broken signature",
      [
        { type: "thinking", thinking: "t", signature: `responses:${OWNER}:{"id":` },
        { type: "text", text: "a" },
      ],
    ],
    // continuedev/continue#8933
    ["that nothing follows", [{ type: "thinking", thinking: "t", signature: mark({ id: "rs_1", encrypted: "e" }) }]],
  ])("leaves out thinking %s, and says so", (_name, content) => {
    const { sent, dropped } = talk([user, { role: "assistant", content }, user]);
    expect(JSON.stringify(sent.input)).not.toContain("reasoning");
    expect(dropped.join()).toMatch(/messages\.content\.(?:redacted_)?thinking/);
  });

  it("sends one reasoning item once", () => {
    const content = [
      { type: "thinking", thinking: "t", signature: mark({ id: "rs_1", encrypted: "e" }) },
      { type: "text", text: "a" },
    ];
    const { sent } = talk([user, { role: "assistant", content }, user, { role: "assistant", content }, user]);
    expect(sent.input.filter(({ type }: { type: string }) => type === "reasoning")).toHaveLength(1);
  });

  it("has no lone surrogates, no blank texts, and ids of at most 64 characters", () => {
    const id = `call_${"x".repeat(100)}|fc_1`;
    const { sent } = talk([
      { role: "user", content: " \n" },
      {
        role: "assistant",
        content: [
          { type: "text", text: " " },
          { type: "tool_use", id, name: "look", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: id, content: "cut \ud83d" },
          { type: "text", text: "" },
        ],
      },
    ]);
    expect(sent.input.map(({ type }: { type: string }) => type)).toEqual(["message", "function_call", "function_call_output"]);
    expect(sent.input[0].content).toBe("(empty message)");
    expect(sent.input[2].output).toBe("cut \ufffd");
    expect(responsesRefusal(sent)).toBeUndefined();
  });

  it.each([
    [{ tools: [{ type: "web_search_20250305", name: "web_search" }] }, "tools.0"],
    [{ mcp_servers: [{ name: "a" }] }, "mcp_servers"],
    [{ tool_choice: { type: "any" } }, "tool_choice"],
    [{ stop_sequences: Array.from({ length: 65 }, (_, index) => `${index}.`) }, "stop_sequences"],
    [{ messages: [] }, "messages"],
  ])("is refused if a part without a counterpart changes its meaning: %j", (more, field) => {
    const failing = () => ask("a", more);
    expect(failing).toThrow(ConversionRefused);
    expect(failing).toThrow(field);
  });

  it("drops what does not change its meaning, by name", () => {
    const { dropped, sent } = ask([{ type: "text", text: "a", cache_control: { type: "ephemeral" } }], {
      top_k: 3,
      service_tier: "auto",
      metadata: { user_id: "u".repeat(65) },
    });
    expect(dropped.toSorted()).toEqual(["cache_control", "metadata.user_id", "service_tier", "top_k"]);
    expect(sent.safety_identifier).toBeUndefined();
    expect(ask("a", { metadata: { user_id: "u" } }).sent.safety_identifier).toBe("u");
  });

  it.each([
    ["include", []],
    ["reasoning.summary", ["thinking.display"]],
    ["reasoning", ["thinking"]],
    ["temperature", ["temperature"]],
    ["max_output_tokens", ["max_tokens"]],
    ["top_p", undefined],
  ] as const)("can be written without a refused part: %s", (part, fields) => {
    const body = { model: "m", max_tokens: 100, temperature: 1, thinking: { type: "adaptive" }, messages: [user] };
    const { sent, dropped, left } = convert(body, [part]);
    expect(left).toEqual(fields === undefined ? [] : [part]);
    expect(dropped).toEqual(fields ?? []);
    if (part === "reasoning.summary") expect(sent.reasoning).toEqual({ effort: "high" });
    else expect(sent[part]).toBeUndefined();
  });

  // continuedev/continue#11994
  it("can be written without encrypted reasoning, and then without the ids of messages", () => {
    const signature = mark({ id: "rs_1", encrypted: "e", message: { id: "msg_1" } });
    const content = [
      { type: "thinking", thinking: "t", signature },
      { type: "text", text: "a" },
    ];
    const { sent, dropped } = convert({ model: "m", max_tokens: 100, messages: [user, { role: "assistant", content }, user] }, [
      "encrypted-reasoning",
    ]);
    expect(JSON.stringify(sent.input)).not.toMatch(/rs_1|msg_1/);
    expect(dropped).toEqual(["messages.content.thinking"]);
  });
});
