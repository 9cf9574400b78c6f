import { demo } from "@portico/adapters/models/demo";
import type { ports } from "@portico/core";
import { json as anyJson, assert, asyncProperty, constantFrom, dictionary, oneof, string } from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { failureOf, fedBody, pieces, readBytes } from "../../conformance/models/subject.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { splitEventStream } from "../../harness/event-stream-text.ts";
import { assertMessagesStream } from "../../harness/stream-grammar.ts";

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly name?: string;
  readonly input?: unknown;
}

interface Message {
  readonly content: readonly Block[];
  readonly stop_reason: string;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

const WEATHER = {
  name: "get_weather",
  input_schema: {
    type: "object",
    properties: {
      city: { type: "string" },
      days: { type: "integer", minimum: 3 },
      unit: { enum: ["c", "f"] },
      note: { type: "string" },
    },
    required: ["city", "days", "unit"],
  },
};

describe("the offline provider demo (open points 2)", () => {
  let provider: ports.ModelProvider;
  beforeEach(async () => {
    ({ port: provider } = await openAdapter(demo({})));
  });

  const sendText = (body: string, signal = new AbortController().signal): Promise<ports.ModelAnswer> =>
    provider.send({ headers: {}, query: "", body: Buffer.from(body) }, signal);
  const send = (more: object): Promise<ports.ModelAnswer> =>
    sendText(JSON.stringify({ model: "demo", max_tokens: 1000, messages: [{ role: "user", content: "Hello there" }], ...more }));
  const ask = async (more: object = {}): Promise<Message> =>
    JSON.parse((await readBytes((await send(more)).body)).toString("utf8"));
  const stream = async (more: object = {}): Promise<string> =>
    (await readBytes((await send({ stream: true, ...more })).body)).toString("utf8");
  const say = (content: unknown) => ({ messages: [{ role: "user", content }] });

  it("is provider `demo` of type `demo` with the model `demo`, under another id if it is told so", async () => {
    expect([provider.id, provider.type, await provider.listModels()]).toEqual(["demo", "demo", ["demo"]]);
    expect((await openAdapter(demo({ id: "own" }))).port.id).toBe("own");
  });

  it("answers the same to the same question, and something else to another", async () => {
    const [first, again, other] = [await ask(), await ask(), await ask(say("Goodbye"))];
    expect(again).toEqual(first);
    expect(other.content).not.toEqual(first.content);
    expect(first).toMatchObject({
      type: "message",
      role: "assistant",
      model: "demo",
      stop_reason: "end_turn",
      stop_sequence: null,
    });
    expect(first.content[0]?.text).toContain("Hello there");
    expect(first.usage.input_tokens).toBeGreaterThan(0);
    expect(first.usage.output_tokens).toBeGreaterThan(0);
  });

  it.each<[string, object]>([
    ["text", {}],
    ["a tool call", { tools: [WEATHER], tool_choice: { type: "any" } }],
    ["an answer that is cut", { max_tokens: 2 }],
  ])("streams %s by the grammar, in several pieces that make up the whole answer", async (_name, more) => {
    const text = await stream(more);
    assertMessagesStream(text);
    const whole = await ask(more);
    const deltas = splitEventStream(text)
      .map(({ data }) => JSON.parse(data) as { type: string; delta?: { text?: string; partial_json?: string } })
      .filter(({ type }) => type === "content_block_delta");
    const joined = deltas.map(({ delta }) => delta?.text ?? delta?.partial_json ?? "").join("");
    const [block] = whole.content;
    expect(block?.type === "tool_use" ? JSON.parse(joined) : joined).toEqual(
      block?.type === "tool_use" ? block.input : block?.text,
    );
    expect(deltas.length).toBeGreaterThan(1);
    expect(text).toContain(`"stop_reason":"${whole.stop_reason}"`);
  });

  describe("tools", () => {
    const called = async (more: object): Promise<readonly (string | undefined)[]> =>
      (await ask({ tools: [WEATHER, { name: "other", input_schema: { type: "object" } }], ...more })).content.map(
        ({ name }) => name,
      );

    it("calls the tool that it must, with arguments that fit its schema", async () => {
      const { content, stop_reason } = await ask({ tools: [WEATHER], tool_choice: { type: "tool", name: "get_weather" } });
      expect(stop_reason).toBe("tool_use");
      expect(content).toEqual([
        {
          type: "tool_use",
          id: expect.stringMatching(/^toolu_/),
          name: "get_weather",
          input: { city: "Hello there", days: 3, unit: "c" },
        },
      ]);
    });

    it("calls the tools that the question names: several at once unless that is off, no tool with `tool_choice` none", async () => {
      expect(await called({})).toEqual([undefined]);
      expect(await called({ tool_choice: { type: "any" } })).toEqual(["get_weather"]);
      expect(await called(say("use get_weather and other"))).toEqual(["get_weather", "other"]);
      expect(
        await called({ ...say("use get_weather and other"), tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
      ).toHaveLength(1);
      expect(await called({ ...say("use get_weather"), tool_choice: { type: "none" } })).toEqual([undefined]);
    });

    it("repeats a tool's result as text, so that a loop ends", async () => {
      const first = await ask({ tools: [WEATHER], ...say("get_weather please") });
      const { content, stop_reason } = await ask({
        tools: [WEATHER],
        messages: [
          { role: "user", content: "get_weather please" },
          { role: "assistant", content: first.content },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "toolu_demo_1_0", content: [{ type: "text", text: "21 degrees" }] }],
          },
        ],
      });
      expect(stop_reason).toBe("end_turn");
      expect(content[0]?.text).toContain("21 degrees");
    });
  });

  describe("structured output", () => {
    const filled = async (schema: unknown): Promise<unknown> =>
      JSON.parse(
        (await ask({ max_tokens: 100_000, output_config: { format: { type: "json_schema", schema } } })).content[0]?.text ?? "",
      );

    it.each<[string, unknown, unknown]>([
      ["an object", WEATHER.input_schema, { city: "Hello there", days: 3, unit: "c" }],
      [
        "all properties where none is required",
        { properties: { a: { type: "boolean" }, b: { type: "null" } } },
        { a: true, b: null },
      ],
      ["a list", { type: "array", minItems: 2, items: { type: "number", exclusiveMinimum: 4, maximum: 9 } }, [5, 5]],
      ["a constant and a default", { type: "object", properties: { a: { const: 7 }, b: { default: "x" } } }, { a: 7, b: "x" }],
      ["the first of several types", { type: ["integer", "null"], maximum: -2 }, -2],
      ["the first alternative", { anyOf: [{ type: "integer" }, { type: "string" }] }, 1],
      [
        "what is defined once",
        { $ref: "#/$defs/n", $defs: { n: { type: "array", items: { $ref: "#/$defs/m" } }, m: { const: 1 } } },
        [1],
      ],
    ])("fills %s", async (_name, schema, expected) => {
      expect(await filled(schema)).toEqual(expected);
    });

    it("ends also with a recursive schema, or one without a size limit", async () => {
      const tree = { $ref: "#/$defs/node", $defs: { node: { type: "array", minItems: 1000, items: { $ref: "#/$defs/node" } } } };
      expect(JSON.stringify(await filled(tree)).length).toBeLessThan(100_000);
      expect(await filled({ $ref: "#/$defs/a", $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }] } } })).toBeNull();
    });
  });

  it("says no more than max_tokens allows, and says so", async () => {
    const { content, stop_reason, usage } = await ask({ max_tokens: 2, ...say("\u{1f680}".repeat(50)) });
    expect(stop_reason).toBe("max_tokens");
    expect(usage.output_tokens).toBe(2);
    expect(content[0]?.text).toBe("You said");
  });

  it("echoes a long question in part, and never half a character", async () => {
    const { content } = await ask({ max_tokens: 100_000, ...say(`${"a".repeat(399)}${"\u{1f680}".repeat(1000)}`) });
    expect(content[0]?.text?.length).toBeLessThan(600);
    expect(content[0]?.text?.isWellFormed()).toBe(true);
  });

  it.each([
    ["", "JSON"],
    ["{", "JSON"],
    ["[]", "JSON"],
    ["null", "JSON"],
    ["{}", "messages"],
    ['{"messages":"hidden-word"}', "messages"],
    ['{"messages":[]}', "messages"],
    ['{"messages":[{}],"max_tokens":0}', "max_tokens"],
    ['{"messages":[{}],"max_tokens":1.5}', "max_tokens"],
    ['{"messages":[{}],"max_tokens":"hidden-word"}', "max_tokens"],
    ['{"messages":[{}],"model":5}', "model"],
    ['{"messages":[{}],"model":""}', "model"],
  ])("refuses %s with 400 as an upstream would, naming the field", async (body, field) => {
    const answer = await sendText(body);
    expect(answer.status).toBe(400);
    const text = (await readBytes(answer.body)).toString("utf8");
    expect(JSON.parse(text)).toEqual({
      type: "error",
      error: { type: "invalid_request_error", message: expect.stringContaining(field) },
    });
    expect(text).not.toContain("hidden-word");
  });

  it("refuses a body of more than 32 MiB with 413", async () => {
    const chunk = Buffer.alloc(1024 * 1024, " ");
    const body = fedBody(...Array.from({ length: 33 }, () => chunk));
    const answer = await provider.send({ headers: {}, query: "", body }, new AbortController().signal);
    expect([answer.status, body.destroyed]).toEqual([413, true]);
    expect(JSON.parse((await readBytes(answer.body)).toString("utf8"))).toMatchObject({ error: { type: "request_too_large" } });
  });

  it("answers 200 or 400 to anything, and its streams obey the grammar", async () => {
    const value = anyJson().map((text): unknown => JSON.parse(text));
    const key = constantFrom(
      "messages",
      "tools",
      "tool_choice",
      "output_config",
      "stream",
      "max_tokens",
      "model",
      "role",
      "content",
      "type",
    );
    const schemaKey = constantFrom(
      "type",
      "properties",
      "required",
      "items",
      "enum",
      "anyOf",
      "$ref",
      "minItems",
      "minimum",
      "const",
    );
    const some = oneof(value, string(), dictionary(oneof(key, schemaKey), value));
    const request = dictionary(key, some).map((fields) => ({
      ...fields,
      messages: fields["messages"] ?? [{ role: "user", content: fields["content"] }],
      tools: [
        fields["tools"],
        { name: "t", input_schema: fields["type"] },
        { name: "t", input_schema: { type: "object", properties: fields["role"] } },
      ],
    }));
    await assert(
      asyncProperty(request, async (body) => {
        const answer = await sendText(JSON.stringify(body));
        expect([200, 400]).toContain(answer.status);
        const text = (await readBytes(answer.body)).toString("utf8");
        if (String(answer.headers["content-type"]).startsWith("text/event-stream")) assertMessagesStream(text);
        else JSON.parse(text);
      }),
      { numRuns: 300 },
    );
  });

  it("fails a stream at once when its caller leaves", async () => {
    const leaving = new AbortController();
    const { body } = await sendText('{"messages":[{"role":"user","content":"hello"}],"stream":true}', leaving.signal);
    const next = pieces(body);
    expect(await next()).toContain("event: message_start");
    const reason = new Error("the caller left");
    leaving.abort(reason);
    expect(await failureOf(readBytes(body))).toBe(reason);
  });
});
