import fc from "fast-check";
import type { Json, JsonObject } from "../../../core/src/model-protocols/json.ts";

/**
 * Requests of both protocols that can be said in the other one: everything that the conversion promises to keep, in the
 * mixtures that callers send. Keys that are undefined are left out, as on the wire.
 */

const said = fc
  .string({ minLength: 1, maxLength: 12, unit: "grapheme" })
  .filter((text) => text.trim() !== "" && !text.includes("["));
const blank = fc.constantFrom("", " ", "\n");
const name = fc.stringMatching(/^[a-z_]{1,8}$/);
const base64 = fc.base64String({ maxLength: 8 });
const url = fc.webUrl({ validSchemes: ["https"] });
const imageType = fc.constantFrom("image/png", "image/jpeg", "image/gif", "image/webp");
const fileName = fc.stringMatching(/^[a-z]{1,8}\.pdf$/);
const input = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
const schema = fc.record({
  type: fc.constant("object"),
  properties: fc.dictionary(name, fc.constant({ type: "string" }), { maxKeys: 2 }),
});
const effort = fc.constantFrom("low", "medium", "high", "xhigh", "max");

const sampling = {
  temperature: maybe(fc.constantFrom(0, 0.5, 1)),
  top_p: maybe(fc.constantFrom(0.1, 1)),
  stream: maybe(fc.boolean()),
};

/** One exchange: what the user said, then the assistant's thinking, text and calls, each call with its result. */
function conversation<Said, Thought, Result>(
  spoken: fc.Arbitrary<Said>,
  thought: fc.Arbitrary<Thought>,
  result: fc.Arbitrary<Result>,
) {
  const call = fc.record({ name, input, idStyle: fc.nat(4), result });
  const exchange = fc.record({
    instruction: fc.option(said, { freq: 6 }),
    said: fc.array(spoken, { maxLength: 3 }),
    thoughts: fc.array(thought, { maxLength: 2 }),
    text: fc.option(fc.oneof(said, blank), { freq: 3 }),
    calls: fc.array(call, { maxLength: 3 }),
  });
  return fc.array(exchange, { minLength: 1, maxLength: 4 });
}

const textBlock = said.map((text) => ({ type: "text", text }));
const imageBlock = fc.oneof(
  url.map((at) => ({ type: "image", source: { type: "url", url: at } })),
  fc.tuple(imageType, base64).map(([media_type, data]) => ({ type: "image", source: { type: "base64", media_type, data } })),
);
const documentBlock = fc
  .tuple(maybe(fileName), base64)
  .map(([title, data]) => ({ type: "document", title, source: { type: "base64", media_type: "application/pdf", data } }));
const thinkingBlock = fc.oneof(
  fc.tuple(said, said).map(([thinking, signature]) => ({ type: "thinking", thinking, signature })),
  base64.map((data) => ({ type: "redacted_thinking", data: `${data}=` })),
);
const messagesResult = fc.record({
  content: fc.oneof(maybe(said), fc.array(fc.oneof(textBlock, imageBlock), { maxLength: 3 })),
  is_error: maybe(fc.boolean()),
});

/** Any Messages request that can be said in Chat Completions. */
export const anyMessagesRequest: fc.Arbitrary<JsonObject> = fc
  .record({
    exchanges: conversation(fc.oneof(textBlock, imageBlock, documentBlock), thinkingBlock, messagesResult),
    ending: fc.constantFrom("user", "assistant"),
    settings: fc.record({
      model: fc.constant("m"),
      max_tokens: fc.integer({ min: 1, max: 64_000 }),
      system: maybe(fc.oneof(said, fc.array(textBlock, { maxLength: 2 }))),
      tools: maybe(
        fc.array(fc.record({ name, description: maybe(said), input_schema: schema, strict: maybe(fc.boolean()) }), {
          minLength: 1,
          maxLength: 3,
        }),
      ),
      tool_choice: maybe(messagesChoice()),
      thinking: maybe(
        fc.oneof(
          fc.constantFrom({ type: "adaptive" }, { type: "disabled" }),
          fc.integer({ min: 1_024, max: 40_000 }).map((budget_tokens) => ({ type: "enabled", budget_tokens })),
        ),
      ),
      output_config: maybe(
        fc.record({ effort: maybe(effort), format: maybe(schema.map((it) => ({ type: "json_schema", schema: it }))) }),
      ),
      stop_sequences: maybe(fc.array(said, { maxLength: 4 })),
      metadata: maybe(fc.record({ user_id: name })),
      ...sampling,
    }),
  })
  .map(({ exchanges, ending, settings }) => {
    let calls = 0;
    let results: Json[] = [];
    const messages: Json[] = [];
    for (const exchange of exchanges) {
      messages.push({ role: "user", content: orSomething([...results, ...(exchange.said as Json[])]) });
      if (exchange.instruction !== null) messages.push({ role: "system", content: exchange.instruction });
      const asked = exchange.calls.map((call) => ({
        ...call,
        id: `${["toolu_", "call-", "x".repeat(60), "esc-", "sha-"][call.idStyle]}${calls++}`,
      }));
      results = asked.map(({ id, result }) => ({ type: "tool_result", tool_use_id: id, ...result }) as Json);
      const text = exchange.text === null || exchange.text.trim() === "" ? [] : [{ type: "text", text: exchange.text }];
      const uses = asked.map((call) => ({ type: "tool_use", id: call.id, name: call.name, input: call.input }));
      messages.push({ role: "assistant", content: orSomething([...exchange.thoughts, ...text, ...uses] as Json[]) });
    }
    if (ending === "user" || results.length > 0)
      messages.push({ role: "user", content: [...results, { type: "text", text: "end" }] });
    return onTheWire({ ...withTools(settings), messages });
  });

const textPart = fc
  .oneof({ weight: 4, arbitrary: said }, { weight: 1, arbitrary: blank })
  .map((text) => ({ type: "text", text }));
const imagePart = fc
  .oneof(
    url,
    fc.tuple(imageType, base64).map(([type, data]) => `data:${type};base64,${data}`),
  )
  .map((at) => ({ type: "image_url", image_url: { url: at } }));
const filePart = fc
  .tuple(maybe(fileName), base64)
  .map(([filename, data]) => ({ type: "file", file: { filename, file_data: `data:application/pdf;base64,${data}` } }));
const reasoningDetail = fc.oneof(
  fc.tuple(said, said).map(([text, signature]) => ({ type: "reasoning.text", text, signature })),
  base64.map((data) => ({ type: "reasoning.encrypted", data: `${data}=` })),
);

/** Any Chat Completions request that can be said in Messages. */
export const anyChatRequest: fc.Arbitrary<JsonObject> = fc
  .record({
    head: fc.array(fc.record({ role: fc.constantFrom("system", "developer"), content: fc.oneof(said, blank) }), { maxLength: 2 }),
    exchanges: conversation(fc.oneof(textPart, imagePart, filePart), reasoningDetail, fc.oneof(said, blank)),
    assistantFirst: fc.boolean(),
    ending: fc.constantFrom("user", "assistant"),
    settings: fc.record({
      model: fc.constant("m"),
      max_completion_tokens: maybe(fc.integer({ min: 1, max: 64_000 })),
      max_tokens: maybe(fc.integer({ min: 1, max: 64_000 })),
      tools: maybe(
        fc.array(
          fc
            .record({ name, description: maybe(said), parameters: maybe(schema), strict: maybe(fc.boolean()) })
            .map((it) => ({ type: "function", function: it })),
          { minLength: 1, maxLength: 3 },
        ),
      ),
      tool_choice: maybe(
        fc.oneof(
          fc.constantFrom("auto", "none", "required"),
          name.map((it) => ({ type: "function", function: { name: it } })),
        ),
      ),
      parallel_tool_calls: maybe(fc.boolean()),
      reasoning_effort: maybe(fc.oneof(effort, fc.constantFrom("none", "minimal"))),
      response_format: maybe(schema.map((it) => ({ type: "json_schema", json_schema: { name: "n", schema: it } }))),
      stop: maybe(fc.oneof(said, fc.array(said, { maxLength: 4 }))),
      user: maybe(name),
      safety_identifier: maybe(name),
      ...sampling,
    }),
  })
  .map(({ head, exchanges, assistantFirst, ending, settings }) => {
    let calls = 0;
    let results: Json[] = [];
    const messages: Json[] = [...head];
    if (assistantFirst) messages.push({ role: "assistant", content: "Hello." });
    for (const exchange of exchanges) {
      messages.push(...results, { role: "user", content: exchange.said as Json });
      if (exchange.instruction !== null) messages.push({ role: "developer", content: exchange.instruction });
      const asked = exchange.calls.map((call) => ({
        ...call,
        id: `${["call_", "functions.look:", "x".repeat(60), "esc-", "sha-"][call.idStyle]}${calls++}`,
      }));
      results = asked.map((call) => ({ role: "tool", tool_call_id: call.id, content: call.result }));
      const tool_calls = asked.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: JSON.stringify(call.input) },
      }));
      const reasoning_details = exchange.thoughts.length > 0 ? (exchange.thoughts as Json) : undefined;
      messages.push({
        role: "assistant",
        content: exchange.text,
        reasoning_details,
        ...(tool_calls.length > 0 && { tool_calls }),
      });
    }
    messages.push(...results);
    if (ending === "user" || results.length > 0) messages.push({ role: "user", content: "end" });
    return onTheWire({ ...withTools(settings), messages });
  });

/** Messages takes no empty turn. */
function orSomething(content: Json[]): Json[] {
  return content.length > 0 ? content : [{ type: "text", text: "go on" }];
}

function messagesChoice(): fc.Arbitrary<JsonObject> {
  return fc.record({
    type: fc.constantFrom("auto", "any", "tool", "none"),
    name: fc.constant("t"),
    disable_parallel_tool_use: maybe(fc.boolean()),
  });
}

function maybe<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(value, { nil: undefined });
}

/** A choice without tools is no valid request in either protocol. */
function withTools(settings: object): JsonObject {
  const { tools, tool_choice, parallel_tool_calls, ...rest } = settings as JsonObject;
  return tools === undefined ? rest : { ...rest, tools, tool_choice, parallel_tool_calls };
}

function onTheWire(body: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(body)) as JsonObject;
}
