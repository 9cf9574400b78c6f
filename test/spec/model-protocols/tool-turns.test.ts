import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import { type ChatMessage, chatMessages, type MessagesTurn, messagesTurns, refusal, toChat } from "./converted.ts";

const text = (content: string) => ({ type: "text" as const, text: content });
const use = (id: string, input: JsonObject = {}): JsonObject => ({ type: "tool_use", id, name: "look", input });
const result = (id: string, content?: JsonObject["x"], more: JsonObject = {}): JsonObject => ({
  type: "tool_result",
  tool_use_id: id,
  ...(content === undefined ? {} : { content }),
  ...more,
});
const call = (id: string, args: JsonObject["x"] = "{}"): JsonObject => ({
  id,
  type: "function",
  function: { name: "look", arguments: args },
});
const image: JsonObject = { type: "image", source: { type: "url", url: "https://a.example/a.png" } };
const imagePart: JsonObject = { type: "image_url", image_url: { url: "https://a.example/a.png" } };

describe("calls of tools, towards Chat Completions", () => {
  it("several at once, beside text and without", () => {
    const messages = chatMessages(
      { role: "assistant", content: [text("I look."), use("t1", { at: "north", n: 1 }), use("t2")] },
      { role: "assistant", content: [use("t3")] },
    );
    expect(messages).toEqual([
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [call("t1", '{"at":"north","n":1}'), call("t2")] as never,
      },
      { role: "assistant", content: null, tool_calls: [call("t3")] as never },
    ] satisfies ChatMessage[]);
  });

  it("text around a call stays apart", () => {
    expect(chatMessages({ role: "assistant", content: [text("Before."), use("t1"), text("After.")] })).toMatchObject([
      { content: "Before.\n\nAfter.", tool_calls: [call("t1")] },
    ]);
  });

  it.each<[JsonObject, string]>([
    [{ type: "tool_use", name: "look", input: {} }, "id"],
    [{ type: "tool_use", id: "t", input: {} }, "name"],
    [{ type: "tool_use", id: "t", name: "look", input: [] }, "input"],
    [{ ...use("t"), caller: { type: "code_execution_20260120", tool_id: "s" } }, "caller"],
  ])("are refused where they are malformed: %j", (block, field) => {
    expect(refusal(() => chatMessages({ role: "assistant", content: [block] })).field).toBe(`messages.0.content.0.${field}`);
  });

  it("are refused where their input is nested too deeply to be written", () => {
    let input: JsonObject = {};
    for (let depth = 0; depth < 200_000; depth++) input = { a: input };
    expect(refusal(() => chatMessages({ role: "assistant", content: [use("t", input)] })).field).toBe(
      "messages.0.content.0.input",
    );
  });
});

describe("results of tools, towards Chat Completions", () => {
  it("several in one turn are messages of their own, and what the user said follows", () => {
    const turn = { role: "user", content: [result("t1", "sunny"), result("t2", [text("a"), text("b")]), text("and now?")] };
    expect(chatMessages(turn)).toEqual([
      { role: "tool", tool_call_id: "t1", content: "sunny" },
      { role: "tool", tool_call_id: "t2", content: "a\n\nb" },
      { role: "user", content: "and now?" },
    ] satisfies ChatMessage[]);
  });

  it("come first even where the user spoke before them", () => {
    expect(chatMessages({ role: "user", content: [text("here"), result("t1", "sunny")] })).toMatchObject([
      { role: "tool", content: "sunny" },
      { role: "user", content: "here" },
    ]);
  });

  it.each<[string, JsonObject, string]>([
    ["a failure", result("t", "not found\n", { is_error: true }), "[tool error] not found\n"],
    ["a failure without a word", result("t", undefined, { is_error: true }), "[tool error]"],
    ["a success", result("t", "found", { is_error: false }), "found"],
    ["nothing", result("t"), ""],
    ["null", result("t", null), ""],
    ["empty blocks", result("t", [text(""), text("a"), text("")]), "a"],
    ["a tool that was found", result("t", [{ type: "tool_reference", tool_name: "x" }]), "[tool found: x]"],
    [
      "a search result",
      result("t", [{ type: "search_result", title: "T", source: "S", content: [text("c")] }]),
      "<search_result>\n<title>T</title>\n<source>S</source>\nc\n</search_result>",
    ],
    [
      "a text document",
      result("t", [{ type: "document", source: { type: "text", media_type: "text/plain", data: "d" } }]),
      "<document>\nd\n</document>",
    ],
  ])("%s", (_, block, content) => {
    expect(chatMessages({ role: "user", content: [block] })).toEqual([{ role: "tool", tool_call_id: "t", content }]);
  });

  it("images go into the user message that follows, each named after its call", () => {
    const turn = { role: "user", content: [result("t1", [text("two"), image, image]), result("t2", [image]), text("compare")] };
    const marks = "two\n\n[attachment 1: in the next user message]\n\n[attachment 2: in the next user message]";
    expect(chatMessages(turn)).toEqual([
      { role: "tool", tool_call_id: "t1", content: marks },
      { role: "tool", tool_call_id: "t2", content: "[attachment 1: in the next user message]" },
      {
        role: "user",
        content: [
          text("[attachment 1 of the result of tool call t1]"),
          imagePart,
          text("[attachment 2 of the result of tool call t1]"),
          imagePart,
          text("[attachment 1 of the result of tool call t2]"),
          imagePart,
          text("compare"),
        ] as never,
      },
    ] satisfies ChatMessage[]);
  });

  it.each<[JsonObject, string]>([
    [{ type: "tool_result", content: "a" }, "tool_use_id"],
    [result("t", 1), "content"],
    [result("t", [{ type: "browser_state", tabs: [] }]), "content.0"],
    [result("t", [{ type: "text" }]), "content.0.text"],
    [result("t", "a", { is_error: "yes" }), "is_error"],
  ])("are refused where they are malformed: %j", (block, field) => {
    expect(refusal(() => chatMessages({ role: "user", content: [block] })).field).toBe(`messages.0.content.0.${field}`);
  });
});

describe("a loop with a tool, towards Messages", () => {
  it("consecutive results and what the user says next are one turn, results first", () => {
    const turns = messagesTurns(
      { role: "user", content: "weather?" },
      { role: "assistant", content: null, tool_calls: [call("c1", '{"at":"north"}'), call("c2", "")] },
      { role: "tool", tool_call_id: "c1", content: "sunny" },
      { role: "tool", tool_call_id: "c2", content: [text("rain"), imagePart, text("")] },
      { role: "user", content: "and now?" },
    );
    expect(turns).toEqual([
      { role: "user", content: "weather?" },
      { role: "assistant", content: [use("c1", { at: "north" }), use("c2")] as never },
      { role: "user", content: [result("c1", "sunny"), result("c2", [text("rain"), image]), text("and now?")] as never },
    ] satisfies MessagesTurn[]);
  });

  it.each(["", " ", null, undefined, []])("a result with empty content is converted without content: %j", (content) => {
    expect(messagesTurns({ role: "tool", tool_call_id: "c1", content })).toMatchObject([{ content: [result("c1")] }]);
  });

  it.each([
    ['{"path": "a', { arguments: '{"path": "a' }],
    ["[1]", { arguments: "[1]" }],
    [{ a: 1 }, { a: 1 }],
  ])(
    "arguments that are not the JSON text of an object stay in the conversation: %j (router-for-me/CLIProxyAPI#2001, esengine/DeepSeek-Reasonix#9566)",
    (args, input) => {
      const message = { role: "assistant", tool_calls: [{ id: "c", function: { name: "look", arguments: args } }] };
      expect(messagesTurns({ role: "user", content: "a" }, message)).toMatchObject([{}, { content: [{ name: "look", input }] }]);
    },
  );

  it.each(["", "  ", null, undefined])("arguments that say nothing are an empty object: %j", (args) => {
    const message = { role: "assistant", tool_calls: [{ id: "c", function: { name: "look", arguments: args } }] };
    expect(messagesTurns({ role: "user", content: "a" }, message)).toMatchObject([{}, { content: [use("c")] }]);
  });

  it("an id that Messages refuses is rewritten alike in the call and its result", () => {
    const [, asked, answered] = messagesTurns(
      { role: "user", content: "a" },
      { role: "assistant", tool_calls: [call("functions.look:0")] },
      { role: "tool", tool_call_id: "functions.look:0", content: "b" },
    ) as { content: [JsonObject] }[];
    expect(asked?.content[0].id).toMatch(/^[a-zA-Z0-9_-]+$/);
    expect(asked?.content[0].id).toBe(answered?.content[0].tool_use_id);
  });

  it("and its provider gets it back as it gave it", () => {
    const [, asked] = messagesTurns(
      { role: "user", content: "a" },
      { role: "assistant", tool_calls: [call("functions.look:0")] },
    ) as {
      content: [JsonObject];
    }[];
    const turns = [
      { role: "assistant", content: asked?.content as JsonObject["x"] },
      { role: "user", content: [result(String(asked?.content[0].id), "b")] },
    ];
    expect(chatMessages(...turns)).toMatchObject([
      { tool_calls: [{ id: "functions.look:0" }] },
      { role: "tool", tool_call_id: "functions.look:0" },
    ]);
  });

  it.each<[JsonObject, string]>([
    [{ tool_calls: {} }, "tool_calls"],
    [{ tool_calls: [null] }, "tool_calls.0"],
    [{ tool_calls: [{ type: "custom", id: "c", custom: { name: "g", input: "secret" } }] }, "tool_calls.0"],
    [{ tool_calls: [{ function: { name: "a" } }] }, "tool_calls.0.id"],
    [{ tool_calls: [{ id: "c" }] }, "tool_calls.0.function"],
    [{ tool_calls: [{ id: "c", function: { arguments: "{}" } }] }, "tool_calls.0.function.name"],
    [{ tool_calls: [call("c", 7)] }, "tool_calls.0.function.arguments"],
  ])("is refused where a call is malformed, without its text: %j", (fields, field) => {
    const refused = refusal(() => messagesTurns({ role: "assistant", ...fields }));
    expect(refused.field).toBe(`messages.0.${field}`);
    expect(refused.message).not.toContain("secret");
  });

  it.each<[JsonObject, string]>([
    [{ role: "tool", content: "a" }, "tool_call_id"],
    [{ role: "tool", tool_call_id: "c", content: 1 }, "content"],
    [{ role: "tool", tool_call_id: "c", content: [{ type: "input_audio" }] }, "content.0"],
  ])("is refused where a result is malformed: %j", (message, field) => {
    expect(refusal(() => messagesTurns(message)).field).toBe(`messages.0.${field}`);
  });
});

describe("legacy function calls, towards Messages", () => {
  const called = (name: string, args: string): JsonObject => ({
    role: "assistant",
    content: null,
    function_call: { name, arguments: args },
  });
  const answered = (name: string, content: string): JsonObject => ({ role: "function", name, content });

  it("are paired in their order by name, since they have no ids", () => {
    const turns = messagesTurns(
      { role: "user", content: "a" },
      called("look", '{"n":1}'),
      answered("look", "one"),
      called("look", '{"n":2}'),
      answered("look", "two"),
    ) as { content: [JsonObject] }[];
    const [, first, one, second, two] = turns.map((turn) => turn.content[0]);
    expect(first).toMatchObject({ type: "tool_use", name: "look", input: { n: 1 } });
    expect(one).toMatchObject({ type: "tool_result", content: "one", tool_use_id: first?.id });
    expect(second).toMatchObject({ type: "tool_use", input: { n: 2 } });
    expect(two).toMatchObject({ content: "two", tool_use_id: second?.id });
    expect(first?.id).not.toBe(second?.id);
  });

  it("are answered in the order in which they were made", () => {
    const turns = messagesTurns(
      { role: "user", content: "a" },
      called("look", '{"n":1}'),
      called("look", '{"n":2}'),
      answered("look", "one"),
      answered("look", "two"),
    ) as { content: JsonObject[] }[];
    const [first, second] = turns[1]?.content ?? [];
    expect(turns[2]?.content).toMatchObject([
      { tool_use_id: first?.id, content: "one" },
      { tool_use_id: second?.id, content: "two" },
    ]);
  });

  it.each<[JsonObject[], string]>([
    [[answered("look", "a")], "messages.0.name"],
    [[called("look", ""), answered("find", "a")], "messages.1.name"],
    [[called("look", ""), answered("look", "a"), answered("look", "a")], "messages.2.name"],
    [[{ role: "assistant", function_call: { name: "look", arguments: 7 } }], "messages.0.function_call.arguments"],
    [[{ role: "function", content: "a" }], "messages.0.name"],
  ])("are refused where an answer has no call: %j", (messages, field) => {
    expect(refusal(() => messagesTurns(...messages)).field).toBe(field);
  });
});

it("blocks of another provider's tools in the history are refused by name", () => {
  const block = { type: "web_search_tool_result", tool_use_id: "s", content: [] };
  const refused = refusal(() => toChat({ messages: [{ role: "assistant", content: [block] }] }));
  expect(refused.message).toContain('"web_search_tool_result"');
});
