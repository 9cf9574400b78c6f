import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import { type ChatMessage, chatMessages, messagesTurns, refusal, toChat, toMessages } from "./converted.ts";

const text = (content: string) => ({ type: "text" as const, text: content });
const user = (content: JsonObject["x"]): JsonObject => ({ role: "user", content });
const assistant = (content: JsonObject["x"]): JsonObject => ({ role: "assistant", content });

describe("system, towards Chat Completions", () => {
  it.each<[JsonObject["x"], ChatMessage[]]>([
    ["be brief", [{ role: "system", content: "be brief" }]],
    [[text("be brief"), text("be kind")], [{ role: "system", content: "be brief\n\nbe kind" }]],
    ["", []],
    [[], []],
    [null, []],
  ])("%j is one message before all others", (system, expected) => {
    expect(toChat({ system }).body.messages).toEqual([...expected, { role: "user", content: "hi" }]);
  });

  it("a message in the midst stays where it is", () => {
    const messages = [user("a"), { role: "system", content: [text("from now on"), text("in French")] }, assistant("b")];
    expect(chatMessages(...messages)).toEqual([
      user("a"),
      { role: "system", content: "from now on\n\nin French" },
      assistant("b"),
    ]);
  });

  it.each<[JsonObject["x"], string]>([
    [1, "system"],
    [[{ type: "image" }], "system.0"],
    [[{ type: "text" }], "system.0.text"],
  ])("anything but text is refused: %j", (system, field) => {
    expect(refusal(() => toChat({ system })).field).toBe(field);
  });
});

describe("system and developer messages, towards Messages", () => {
  const system = (content: JsonObject["x"], role = "system"): JsonObject => ({ role, content });

  it.each<[string, JsonObject[], JsonObject["x"]]>([
    ["one", [system("be brief")], "be brief"],
    ["a developer's", [system("be brief", "developer")], "be brief"],
    ["several", [system("be brief"), system([text("be kind"), text(" ")], "developer")], [text("be brief"), text("be kind")]],
    ["an empty one", [system("")], undefined],
  ])("at the head are the system: %s", (_, head, expected) => {
    const { body } = toMessages({ messages: [...head, user("hi")] });
    expect(body.system).toEqual(expected);
    expect(body.messages).toEqual([user("hi")]);
  });

  it("in the midst stay in their place, as marked text of the user", () => {
    const { body } = toMessages({
      messages: [user("a"), assistant("b"), user("c"), system([text("in French"), text("only")], "developer"), system(" ")],
    });
    expect(body).not.toHaveProperty("system");
    expect(body.messages).toEqual([user("a"), assistant("b"), user([text("c"), text("<system>\nin French\n\nonly\n</system>")])]);
  });

  it("without anything else leave a conversation that has yet to begin", () => {
    expect(toMessages({ messages: [system("go")] }).body).toMatchObject({
      system: "go",
      messages: [user("(start of conversation)")],
    });
  });
});

describe("the order of turns, towards Messages", () => {
  it("neighbours of one role become one turn", () => {
    expect(messagesTurns(user("a"), user([text("b")]), assistant("c"), assistant("d"), user("e"))).toEqual([
      user([text("a"), text("b")]),
      assistant([text("c"), text("d")]),
      user("e"),
    ]);
  });

  it("begins with the user even if the assistant spoke first", () => {
    expect(messagesTurns(assistant("hello"), user("hi"))).toEqual([
      user("(start of conversation)"),
      assistant("hello"),
      user("hi"),
    ]);
  });

  it.each(["", "  \n", []])("keeps an empty user turn: %j", (content) => {
    expect(messagesTurns(user("a"), assistant("b"), user(content))).toEqual([user("a"), assistant("b"), user("(empty message)")]);
  });

  it.each(["", null, undefined, []])("leaves out an assistant that said nothing: %j", (content) => {
    expect(messagesTurns(user("a"), assistant(content), user("b"))).toEqual([user([text("a"), text("b")])]);
  });

  it("keeps an assistant's turn at the end, without the whitespace that Messages refuses there", () => {
    expect(messagesTurns(user("a"), assistant("The answer is \n"))).toEqual([user("a"), assistant("The answer is")]);
    expect(messagesTurns(user("a"), assistant("b "), user("c"))).toEqual([user("a"), assistant("b "), user("c")]);
  });

  it.each<[JsonObject]>([
    [{ role: "assistant", content: null, refusal: "I won't" }],
    [{ role: "assistant", content: [{ type: "refusal", refusal: "I won't" }] }],
  ])("a refusal is what the assistant said: %j", (message) => {
    expect(messagesTurns(user("a"), message, user("b"))).toEqual([user("a"), assistant("I won't"), user("b")]);
  });

  it("an answer can be sent back as it came, and a name is dropped", () => {
    const answer = { role: "assistant", content: "b", refusal: null, annotations: [], audio: null, function_call: null };
    const { dropped } = toMessages({ messages: [{ ...user("a"), name: "ann" }, answer, { ...user("c"), name: "ben" }] });
    expect(dropped).toEqual(["messages.name"]);
  });
});

describe("the order of turns, towards Chat Completions", () => {
  it("is kept, neighbours, first assistant and last assistant included", () => {
    const messages = [assistant("a"), user("b"), user("c"), assistant("d"), assistant("The answer is")];
    expect(chatMessages(...messages)).toEqual(messages);
  });

  it("an assistant's neighbouring texts are one, as they were before a citation cut them", () => {
    expect(chatMessages(assistant([text("It is "), text("blue.")]))).toEqual([assistant("It is blue.")]);
  });

  it("empty content stays an empty message", () => {
    expect(chatMessages(user([]), assistant([]))).toEqual([user(""), assistant("")]);
  });
});

describe("a malformed conversation is refused at its place", () => {
  const cases: [JsonObject["x"], string][] = [
    [undefined, "messages"],
    [null, "messages"],
    [[], "messages"],
    [{}, "messages"],
    [["hi"], "messages.0"],
    [[user("a"), {}], "messages.1.role"],
    [[{ role: "__proto__", content: "a" }], "messages.0.role"],
    [[user(1)], "messages.0.content"],
    [[user(null)], "messages.0.content"],
    [[user(["a"])], "messages.0.content.0"],
    [[user([{ text: "a" }])], "messages.0.content.0"],
    [[user([text("a"), { type: "text", text: null }])], "messages.0.content.1.text"],
  ];

  it.each(cases)("towards Messages: %j", (messages, field) => {
    expect(refusal(() => toMessages({ messages })).field).toBe(field);
  });

  it.each(cases)("towards Chat Completions: %j", (messages, field) => {
    expect(refusal(() => toChat({ messages })).field).toMatch(new RegExp(`^${field.replaceAll(".", "\\.")}(\\.type)?$`));
  });

  it.each<[JsonObject, string]>([
    [{ role: "assistant", content: [{ type: "image_url" }] }, "messages.1.content.0"],
    [{ role: "assistant", content: "a", audio: { id: "a1" } }, "messages.1.audio"],
    [{ role: "assistant", content: "a", refusal: 1 }, "messages.1.refusal"],
    [{ role: "developer", content: [{ type: "image_url" }] }, "messages.1.content.0"],
  ])("towards Messages: %j", (message, field) => {
    expect(refusal(() => messagesTurns(user("a"), message)).field).toBe(field);
  });

  it.each<[JsonObject, string]>([
    [assistant([{ type: "image" }]), "messages.1.content.0"],
    [assistant([{ type: "server_tool_use", name: "web_search" }]), "messages.1.content.0"],
    [assistant([{ type: "compaction", content: "c" }]), "messages.1.content.0"],
    [{ role: "developer", content: "a" }, "messages.1.role"],
    [{ role: "tool", content: "a" }, "messages.1.role"],
  ])("towards Chat Completions: %j", (message, field) => {
    expect(refusal(() => chatMessages(user("a"), message)).field).toBe(field);
  });
});

it("a conversation may be longer than a call takes arguments", () => {
  const many = Array.from({ length: 300_000 }, () => text("a"));
  expect(chatMessages(user(many), assistant(many))).toHaveLength(2);
  expect(messagesTurns({ role: "system", content: many }, user(many), assistant(many))).toHaveLength(2);
  const images = many.map(() => ({ type: "image", source: { type: "url", url: "https://a.example/" } }));
  expect(chatMessages(user([{ type: "tool_result", tool_use_id: "t", content: images }]))).toHaveLength(2);
});
