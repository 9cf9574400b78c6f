import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import {
  type ChatFields,
  type ChatMessage,
  type MessagesFields,
  type MessagesTurn,
  refusal,
  toChat,
  toMessages,
} from "./converted.ts";

describe("how much to think, towards Chat Completions", () => {
  it.each<[JsonObject, ChatFields["reasoning_effort"], string[]]>([
    [{}, undefined, []],
    [{ thinking: null, output_config: null }, undefined, []],
    [{ thinking: { type: "disabled" } }, undefined, ["thinking"]],
    [{ thinking: { type: "disabled" }, output_config: { effort: "low" } }, undefined, ["thinking", "output_config.effort"]],
    [{ thinking: { type: "adaptive" } }, "high", []],
    [{ thinking: { type: "adaptive", display: "summarized" } }, "high", ["thinking.display"]],
    [{ thinking: { type: "adaptive" }, output_config: { effort: "medium" } }, "medium", []],
    [{ thinking: { type: "between_tools" } }, "high", ["thinking.type"]],
    [{ thinking: { type: "enabled", budget_tokens: 1_024 } }, "low", []],
    [{ thinking: { type: "enabled", budget_tokens: 4_095 } }, "low", []],
    [{ thinking: { type: "enabled", budget_tokens: 4_096 } }, "medium", []],
    [{ thinking: { type: "enabled", budget_tokens: 16_383 } }, "medium", []],
    [{ thinking: { type: "enabled", budget_tokens: 16_384 } }, "high", []],
    [
      { thinking: { type: "enabled", budget_tokens: 2_000 }, output_config: { effort: "max" } },
      "max",
      ["thinking.budget_tokens"],
    ],
    [{ output_config: { effort: "xhigh" } }, "xhigh", []],
    [{ output_config: { effort: null, task_budget: { total: 1 } } }, undefined, ["output_config.task_budget"]],
  ])("%j", (fields, effort, named) => {
    const { body, dropped } = toChat(fields);
    expect(body.reasoning_effort).toBe(effort);
    expect(dropped).toEqual(named);
  });

  it.each<[JsonObject, string]>([
    [{ thinking: true }, "thinking"],
    [{ thinking: {} }, "thinking.type"],
    [{ thinking: { type: "constructor" } }, "thinking.type"],
    [{ thinking: { type: "enabled" } }, "thinking.budget_tokens"],
    [{ thinking: { type: "enabled", budget_tokens: 0 } }, "thinking.budget_tokens"],
    [{ output_config: { effort: "minimal" } }, "output_config.effort"],
    [{ output_config: { effort: "__proto__" } }, "output_config.effort"],
  ])("is refused where it is malformed: %j", (fields, field) => {
    expect(refusal(() => toChat(fields)).field).toBe(field);
  });
});

describe("how much to think, towards Messages", () => {
  it.each<[JsonObject["x"], MessagesFields]>([
    [undefined, {}],
    [null, {}],
    ["none", { thinking: { type: "disabled" } }],
    ["minimal", { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
    ["low", { thinking: { type: "adaptive" }, output_config: { effort: "low" } }],
    ["medium", { thinking: { type: "adaptive" }, output_config: { effort: "medium" } }],
    ["high", { thinking: { type: "adaptive" }, output_config: { effort: "high" } }],
    ["xhigh", { thinking: { type: "adaptive" }, output_config: { effort: "xhigh" } }],
    ["max", { thinking: { type: "adaptive" }, output_config: { effort: "max" } }],
  ])("%j", (reasoning_effort, expected) => {
    const { thinking, output_config } = toMessages({ reasoning_effort }).body;
    expect({ thinking, output_config }).toEqual({ thinking: undefined, output_config: undefined, ...expected });
  });

  it.each(["most", "toString", 3, {}])("is refused where no one knows the word: %j", (reasoning_effort) => {
    expect(refusal(() => toMessages({ reasoning_effort })).field).toBe("reasoning_effort");
    expect(refusal(() => toMessages({ reasoning: { effort: reasoning_effort } })).field).toBe("reasoning.effort");
  });

  it.each<[JsonObject, MessagesFields, string[]]>([
    [{ reasoning: null }, {}, []],
    [{ reasoning: { effort: null } }, {}, []],
    [{ reasoning: { effort: "none" } }, { thinking: { type: "disabled" } }, []],
    [{ reasoning: { effort: "minimal" } }, { thinking: { type: "adaptive" }, output_config: { effort: "low" } }, []],
    [{ reasoning: { effort: "high" } }, { thinking: { type: "adaptive" }, output_config: { effort: "high" } }, []],
    [
      { reasoning: { effort: "high", exclude: true, summary: "auto" } },
      { thinking: { type: "adaptive" }, output_config: { effort: "high" } },
      ["reasoning.exclude", "reasoning.summary"],
    ],
    [
      { reasoning_effort: "low", reasoning: { effort: "high" } },
      { thinking: { type: "adaptive" }, output_config: { effort: "low" } },
      ["reasoning.effort"],
    ],
    [
      { reasoning_effort: "low", reasoning: { effort: "low" } },
      { thinking: { type: "adaptive" }, output_config: { effort: "low" } },
      [],
    ],
  ])("may be spelled as gateways do: %j", (fields, expected, named) => {
    const { body, dropped } = toMessages(fields);
    const { thinking, output_config } = body;
    expect({ thinking, output_config }).toEqual({ thinking: undefined, output_config: undefined, ...expected });
    expect(dropped).toEqual(named);
  });

  it("is refused if reasoning is not an object", () => {
    expect(refusal(() => toMessages({ reasoning: "high" })).field).toBe("reasoning");
  });
});

const text = { type: "text" as const, text: "answer" };
const signed = { type: "thinking" as const, thinking: "hm", signature: "sig" };
const redacted = { type: "redacted_thinking" as const, data: "blob" };

/** The assistant's turn in the midst of a conversation, converted. */
function chatAssistant(content: JsonObject[]): { message: unknown; dropped: readonly string[] } {
  const { body, dropped } = toChat({ messages: [{ role: "assistant", content }] });
  return { message: (body.messages as JsonObject[])[0], dropped };
}

function messagesAssistant(fields: JsonObject): { content: unknown; dropped: readonly string[] } {
  const message = { role: "assistant", content: "answer", ...fields };
  const { body, dropped } = toMessages({ messages: [{ role: "user", content: "a" }, message] });
  return { content: (body.messages as JsonObject[])[1]?.content, dropped };
}

describe("thinking of earlier turns, towards Chat Completions", () => {
  it.each<[string, JsonObject[], Omit<ChatMessage, "role" | "content">]>([
    ["unsigned", [{ type: "thinking", thinking: "hm" }, text], { reasoning_content: "hm" }],
    ["with an empty signature", [{ ...signed, signature: "" }, text], { reasoning_content: "hm" }],
    [
      "signed",
      [signed, text],
      { reasoning_content: "hm", reasoning_details: [{ type: "reasoning.text", text: "hm", signature: "sig" }] },
    ],
    ["redacted", [redacted, text], { reasoning_details: [{ type: "reasoning.encrypted", data: "blob" }] }],
    [
      "of several blocks, in their order",
      [signed, redacted, { ...signed, thinking: "so", signature: "s2" }, text],
      {
        reasoning_content: "hmso",
        reasoning_details: [
          { type: "reasoning.text", text: "hm", signature: "sig" },
          { type: "reasoning.encrypted", data: "blob" },
          { type: "reasoning.text", text: "so", signature: "s2" },
        ],
      },
    ],
    [
      "hidden, with a signature alone",
      [{ ...signed, thinking: "" }, text],
      { reasoning_details: [{ type: "reasoning.text", text: "", signature: "sig" }] },
    ],
  ])("goes along, for servers that want it back: %s", (_, content, expected) => {
    const { message, dropped } = chatAssistant(content);
    expect(message).toEqual({ role: "assistant", content: "answer", ...expected });
    expect(dropped).toEqual([]);
  });

  it.each<[JsonObject, string]>([
    [{ type: "thinking", signature: "s" }, "thinking"],
    [{ type: "thinking", thinking: "a", signature: 1 }, "signature"],
    [{ type: "redacted_thinking" }, "data"],
  ])("is refused where it is malformed: %j", (block, field) => {
    expect(refusal(() => chatAssistant([text, block])).field).toBe(`messages.0.content.1.${field}`);
  });
});

describe("thinking of earlier turns, towards Messages", () => {
  const detail = { type: "reasoning.text", text: "hm", signature: "sig" };
  const encrypted = { type: "reasoning.encrypted", data: "blob" };

  it.each<[string, JsonObject, MessagesTurn["content"]]>([
    ["signed", { reasoning_content: "hm", reasoning_details: [detail] }, [signed, text]],
    ["redacted", { reasoning_details: [encrypted] }, [redacted, text]],
    ["several in their order", { reasoning_details: [encrypted, detail] }, [redacted, signed, text]],
    ["streamed, the text apart", { reasoning_content: "hm", reasoning_details: [{ ...detail, text: null }] }, [signed, text]],
    [
      "streamed beside a redacted one",
      { reasoning_content: "hm", reasoning_details: [encrypted, { ...detail, text: null }] },
      [redacted, signed, text],
    ],
    ["hidden, with a signature alone", { reasoning_details: [{ ...detail, text: "" }] }, [{ ...signed, thinking: "" }, text]],
    ["with an empty signature", { reasoning_details: [{ ...detail, signature: "" }] }, [{ ...signed, signature: "" }, text]],
  ])("comes back as it was handed out: %s", (_, fields, expected) => {
    const { content, dropped } = messagesAssistant(fields);
    expect(content).toEqual(expected);
    expect(dropped).toEqual([]);
  });

  it("comes before the tool call it led to, so that a tool loop continues", () => {
    const tool_calls = [{ id: "c", type: "function", function: { name: "look", arguments: "{}" } }];
    const { content } = messagesAssistant({ content: null, reasoning_details: [detail], tool_calls });
    expect(content).toEqual([signed, { type: "tool_use", id: "c", name: "look", input: {} }]);
  });

  it.each<[string, JsonObject, string[]]>([
    ["no signature at all", { reasoning_content: "hm" }, ["messages.reasoning_content"]],
    ["a detail without one", { reasoning_details: [{ ...detail, signature: null }] }, ["messages.reasoning_details"]],
    [
      "a detail of another vendor",
      { reasoning_details: [{ type: "reasoning.summary", summary: "s" }] },
      ["messages.reasoning_details"],
    ],
    [
      "one text for two signatures",
      {
        reasoning_content: "hmso",
        reasoning_details: [
          { ...detail, text: null },
          { ...detail, text: null, signature: "s2" },
        ],
      },
      ["messages.reasoning_details"],
    ],
    ["nothing but an empty text", { reasoning_content: "" }, []],
  ])("is left out where its provider would refuse it: %s", (_, fields, named) => {
    const { content, dropped } = messagesAssistant(fields);
    expect(content).toBe("answer");
    expect(dropped).toEqual(named);
  });

  it.each<[JsonObject, string]>([
    [{ reasoning_content: 1 }, "reasoning_content"],
    [{ reasoning_details: {} }, "reasoning_details"],
    [{ reasoning_details: ["a"] }, "reasoning_details.0"],
    [{ reasoning_details: [{ type: "reasoning.encrypted" }] }, "reasoning_details.0.data"],
    [{ reasoning_details: [{ ...detail, text: 1 }] }, "reasoning_details.0.text"],
  ])("is refused where it is malformed: %j", (fields, field) => {
    expect(refusal(() => messagesAssistant(fields)).field).toBe(`messages.1.${field}`);
  });
});
