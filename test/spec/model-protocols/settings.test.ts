import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import { type ChatFields, type MessagesFields, refusal, toChat, toMessages } from "./converted.ts";

/** Only the fields of a body that these tables speak of. */
function only(body: JsonObject, ...fields: string[]): JsonObject {
  return Object.fromEntries(fields.filter((field) => body[field] !== undefined).map((field) => [field, body[field]]));
}

describe("the token limit", () => {
  it("of Messages becomes max_completion_tokens (4.1)", () => {
    const { body } = toChat({ max_tokens: 300 });
    expect(only(body, "max_tokens", "max_completion_tokens")).toEqual({ max_completion_tokens: 300 } satisfies ChatFields);
  });

  it.each<[string, JsonObject, number]>([
    ["max_completion_tokens", { max_completion_tokens: 7 }, 7],
    ["the older max_tokens", { max_tokens: 8 }, 8],
    ["the newer where both are there", { max_completion_tokens: 7, max_tokens: 8 }, 7],
    ["the default where neither is, since Messages requires one", { max_completion_tokens: null }, 8_192],
    ["the default with room to think", { reasoning_effort: "low" }, 32_000],
    ["the plain default where thinking is off", { reasoning_effort: "none" }, 8_192],
  ])("of Chat Completions is %s", (_, fields, expected) => {
    expect(toMessages(fields).body.max_tokens).toBe(expected);
  });

  it.each([0, -1, 1.5, "9", 2 ** 60])("must be a whole number above 0, not %j", (limit) => {
    expect(refusal(() => toChat({ max_tokens: limit })).field).toBe("max_tokens");
    expect(refusal(() => toMessages({ max_completion_tokens: limit })).field).toBe("max_completion_tokens");
    expect(refusal(() => toMessages({ max_tokens: limit })).field).toBe("max_tokens");
  });
});

describe("sampling", () => {
  it("of Messages keeps temperature and top_p; top_k is dropped and named", () => {
    const { body, dropped } = toChat({ temperature: 0, top_p: 0.9, top_k: 40 });
    expect(only(body, "temperature", "top_p", "top_k")).toEqual({ temperature: 0, top_p: 0.9 });
    expect(dropped).toEqual(["top_k"]);
  });

  it.each<[JsonObject, JsonObject, string[]]>([
    [{ temperature: 0, top_p: 0.5 }, { temperature: 0, top_p: 0.5 }, []],
    [{ temperature: 1 }, { temperature: 1 }, []],
    [{ temperature: null, top_p: null }, {}, []],
    [{ frequency_penalty: 0, presence_penalty: null }, {}, []],
    [{ frequency_penalty: 0.5, presence_penalty: -1 }, {}, ["frequency_penalty", "presence_penalty"]],
    [{ reasoning_effort: "high", temperature: 0.2, top_p: 0.5 }, {}, ["temperature", "top_p"]],
    [{ reasoning_effort: "high", temperature: 1, top_p: 0.95 }, { temperature: 1, top_p: 0.95 }, []],
    [{ reasoning_effort: "none", temperature: 0.2 }, { temperature: 0.2 }, []],
  ])("of Chat Completions: %j", (fields, expected, named) => {
    const { body, dropped } = toMessages(fields);
    expect(only(body, "temperature", "top_p", "frequency_penalty", "presence_penalty")).toEqual(expected);
    expect(dropped).toEqual(named);
  });

  it("must be finite numbers: 1e999 is refused", () => {
    expect(refusal(() => toChat({ temperature: "1" })).field).toBe("temperature");
    expect(refusal(() => toChat(JSON.parse('{"top_p":1e999}'))).field).toBe("top_p");
    expect(refusal(() => toMessages(JSON.parse('{"presence_penalty":1e999}'))).field).toBe("presence_penalty");
  });

  it.each([1.01, 2, -0.1, "1"])("a temperature that Messages lacks is refused, not clamped: %j", (temperature) => {
    expect(refusal(() => toMessages({ temperature })).field).toBe("temperature");
  });
});

describe("stop sequences", () => {
  it.each<[unknown, ChatFields]>([
    [["a", "b"], { stop: ["a", "b"] }],
    [["\n"], { stop: ["\n"] }],
    [[], {}],
    [null, {}],
    [["", "a"], { stop: ["a"] }],
  ])("of Messages: %j", (stop_sequences, expected) => {
    expect(only(toChat({ stop_sequences } as JsonObject).body, "stop")).toEqual(expected);
  });

  it.each<[unknown, MessagesFields]>([
    ["END", { stop_sequences: ["END"] }],
    [["a", "b"], { stop_sequences: ["a", "b"] }],
    [null, {}],
    ["", {}],
    [[], {}],
  ])("of Chat Completions: %j", (stop, expected) => {
    expect(only(toMessages({ stop } as JsonObject).body, "stop_sequences")).toEqual(expected);
  });

  it("are refused where one would be lost", () => {
    expect(refusal(() => toChat({ stop_sequences: ["1", "2", "3", "4", "5"] })).field).toBe("stop_sequences");
    expect(refusal(() => toMessages({ stop: "\n\n" })).field).toBe("stop");
    expect(refusal(() => toMessages({ stop: ["a", " "] })).field).toBe("stop");
  });

  it("are refused if they are not texts", () => {
    expect(refusal(() => toChat({ stop_sequences: "a" })).field).toBe("stop_sequences");
    expect(refusal(() => toMessages({ stop: ["a", 1] })).field).toBe("stop.1");
  });
});

describe("structured output", () => {
  const schema = { type: "object", properties: { a: { type: "number" } }, required: ["a"], additionalProperties: false };

  it("of Messages is not strict if the schema does not keep the rules of strict output (BerriAI/litellm#38211)", () => {
    const loose = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a"] };
    const { body } = toChat({ output_config: { format: { type: "json_schema", schema: loose } } });
    expect(body["response_format"]).toMatchObject({ json_schema: { strict: false } });
  });

  it.each<[string, JsonObject]>([
    ["output_config.format", { output_config: { format: { type: "json_schema", schema } } }],
    ["the older output_format", { output_format: { type: "json_schema", schema } }],
    ["the newer before the older", { output_config: { format: { type: "json_schema", schema } }, output_format: { type: "x" } }],
  ])("of Messages is strict, from %s", (_, fields) => {
    const expected = {
      response_format: { type: "json_schema", json_schema: { name: "response", schema, strict: true } },
    } satisfies ChatFields;
    expect(only(toChat(fields).body, "response_format")).toEqual(expected);
  });

  it("of Chat Completions becomes output_config.format; name and description are dropped", () => {
    const json_schema = { name: "answer", description: "d", schema, strict: true };
    const { body, dropped } = toMessages({ response_format: { type: "json_schema", json_schema } });
    expect(body.output_config).toEqual({ format: { type: "json_schema", schema } } satisfies MessagesFields["output_config"]);
    expect(dropped).toEqual(["response_format.json_schema.name", "response_format.json_schema.description"]);
  });

  it("can be combined with the effort", () => {
    const response_format = { type: "json_schema", json_schema: { name: "n", schema } };
    const { body } = toMessages({ reasoning_effort: "low", response_format });
    expect(body.output_config).toEqual({ effort: "low", format: { type: "json_schema", schema } });
  });

  it.each([null, { type: "text" }])("is off for %j", (response_format) => {
    expect(toMessages({ response_format }).body).not.toHaveProperty("output_config");
  });

  it.each<[JsonObject[], MessagesFields["system"]]>([
    [[], [{ type: "text", text: expect.stringContaining("JSON object") }]],
    [
      [{ role: "system", content: "be brief" }],
      [
        { type: "text", text: "be brief" },
        { type: "text", text: expect.stringContaining("JSON object") },
      ],
    ],
    [
      [
        { role: "system", content: "be brief" },
        { role: "developer", content: "be kind", cache_control: { type: "ephemeral" } },
      ],
      [
        { type: "text", text: "be brief" },
        { type: "text", text: "be kind", cache_control: { type: "ephemeral" } },
        { type: "text", text: expect.stringContaining("JSON object") },
      ],
    ],
  ])("of Chat Completions without a schema is an instruction at the end of system, after %j", (head, system) => {
    const { body, dropped } = toMessages({
      messages: [...head, { role: "user", content: "hi" }],
      response_format: { type: "json_object" },
    });
    expect(body.system).toEqual(system);
    expect(body.messages).toEqual([{ role: "user", content: "hi" }]);
    expect(body).not.toHaveProperty("output_config");
    expect(dropped).toEqual([]);
  });

  it.each<[JsonObject["x"], string]>([
    [{ type: "grammar" }, "response_format"],
    ["json", "response_format"],
    [{}, "response_format.type"],
    [{ type: "json_schema" }, "response_format.json_schema"],
    [{ type: "json_schema", json_schema: { name: "n" } }, "response_format.json_schema.schema"],
    [{ type: "json_schema", json_schema: { schema, strict: 1 } }, "response_format.json_schema.strict"],
  ])("is refused where Messages has no such thing: %j", (response_format, field) => {
    expect(refusal(() => toMessages({ response_format })).field).toBe(field);
  });

  it.each<[JsonObject, string]>([
    [{ output_config: { format: { type: "grammar" } } }, "output_config.format.type"],
    [{ output_config: { format: { type: "json_schema" } } }, "output_config.format.schema"],
    [{ output_format: { type: "json_schema" } }, "output_format.schema"],
    [{ output_config: [] }, "output_config"],
  ])("is refused where it is malformed: %j", (fields, field) => {
    expect(refusal(() => toChat(fields)).field).toBe(field);
  });
});

describe("the end user", () => {
  it.each<[JsonObject["x"], JsonObject, string[]]>([
    [{ user_id: "u1" }, { user: "u1" }, []],
    [{ user_id: null }, {}, []],
    [{ user_id: "u".repeat(65) }, {}, ["metadata.user_id"]],
    [{ user_id: "u1", team: "t" }, { user: "u1" }, ["metadata.team"]],
  ])("of Messages: %j", (metadata, expected, named) => {
    const { body, dropped } = toChat({ metadata });
    expect(only(body, "user", "metadata")).toEqual(expected);
    expect(dropped).toEqual(named);
  });

  it.each<[JsonObject, JsonObject, string[]]>([
    [{ user: "u" }, { metadata: { user_id: "u" } }, []],
    [{ safety_identifier: "s" }, { metadata: { user_id: "s" } }, []],
    [{ safety_identifier: "s", user: "u" }, { metadata: { user_id: "s" } }, ["user"]],
    [{ safety_identifier: "s", user: "s" }, { metadata: { user_id: "s" } }, []],
    [{ user: "u".repeat(257) }, {}, ["user"]],
    [{ user: null, metadata: { ticket: "1" } }, {}, ["metadata"]],
  ])("of Chat Completions: %j", (fields, expected, named) => {
    const { body, dropped } = toMessages(fields);
    expect(only(body, "user", "metadata")).toEqual(expected);
    expect(dropped).toEqual(named);
  });
});

describe("streaming", () => {
  it("towards Chat Completions asks for usage, which Messages always reports", () => {
    const expected = { stream: true, stream_options: { include_usage: true } } satisfies ChatFields;
    expect(only(toChat({ stream: true }).body, "stream", "stream_options")).toEqual(expected);
    expect(only(toChat({ stream: false }).body, "stream", "stream_options")).toEqual({ stream: false });
  });

  it("towards Messages needs no options, and no field is dropped", () => {
    const { body, dropped } = toMessages({ stream: true, stream_options: { include_usage: true } });
    expect(only(body, "stream", "stream_options")).toEqual({ stream: true });
    expect(dropped).toEqual([]);
  });

  it("is a switch", () => {
    expect(refusal(() => toChat({ stream: "yes" })).field).toBe("stream");
    expect(refusal(() => toMessages({ stream: 1 })).field).toBe("stream");
  });
});
