import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import { type ChatFields, type MessagesFields, refusal, toChat, toMessages } from "./converted.ts";

const chatTools = ["a", "b", "c"].map((name) => ({ type: "function", function: { name } }));
const messagesTools = ["a", "b"].map((name) => ({ name, input_schema: { type: "object" } }));

describe("the choice of a tool, towards Chat Completions", () => {
  it.each<[JsonObject | null, ChatFields]>([
    [null, {}],
    [{ type: "auto" }, { tool_choice: "auto" }],
    [{ type: "none" }, { tool_choice: "none" }],
    [{ type: "any" }, { tool_choice: "required" }],
    [{ type: "tool", name: "b" }, { tool_choice: { type: "function", function: { name: "b" } } }],
    [
      { type: "auto", disable_parallel_tool_use: true },
      { tool_choice: "auto", parallel_tool_calls: false },
    ],
    [
      { type: "any", disable_parallel_tool_use: true },
      { tool_choice: "required", parallel_tool_calls: false },
    ],
    [{ type: "any", disable_parallel_tool_use: false }, { tool_choice: "required" }],
  ])("%j", (choice, expected) => {
    const { tool_choice, parallel_tool_calls } = toChat({ tools: messagesTools, tool_choice: choice }).body;
    expect({ tool_choice, parallel_tool_calls }).toEqual({ tool_choice: undefined, parallel_tool_calls: undefined, ...expected });
  });

  it("is left out if there are no tools, because both protocols then refuse it", () => {
    const { body } = toChat({ tools: [], tool_choice: { type: "auto", disable_parallel_tool_use: true } });
    expect(Object.keys(body)).not.toContain("tool_choice");
    expect(Object.keys(body)).not.toContain("parallel_tool_calls");
  });

  it.each([
    [{ tool_choice: { type: "any" } }, "tool_choice"],
    [{ tools: messagesTools, tool_choice: "auto" }, "tool_choice"],
    [{ tools: messagesTools, tool_choice: { type: "some" } }, "tool_choice.type"],
    [{ tools: messagesTools, tool_choice: { type: "tool" } }, "tool_choice.name"],
    [
      { tools: messagesTools, tool_choice: { type: "any", disable_parallel_tool_use: 1 } },
      "tool_choice.disable_parallel_tool_use",
    ],
  ])("is refused where it can't hold: %j", (fields, field) => {
    expect(refusal(() => toChat(fields)).field).toBe(field);
  });
});

describe("the choice of a tool, towards Messages", () => {
  it.each<[JsonObject, MessagesFields["tool_choice"]]>([
    [{}, undefined],
    [{ tool_choice: null, parallel_tool_calls: null }, undefined],
    [{ tool_choice: "auto" }, { type: "auto" }],
    [{ tool_choice: "none" }, { type: "none" }],
    [{ tool_choice: "required" }, { type: "any" }],
    [{ tool_choice: { type: "function", function: { name: "b" } } }, { type: "tool", name: "b" }],
    [{ parallel_tool_calls: true }, undefined],
    [{ parallel_tool_calls: false }, { type: "auto", disable_parallel_tool_use: true }],
    [
      { parallel_tool_calls: false, tool_choice: "required" },
      { type: "any", disable_parallel_tool_use: true },
    ],
    [
      { parallel_tool_calls: false, tool_choice: { type: "function", function: { name: "b" } } },
      { type: "tool", name: "b", disable_parallel_tool_use: true },
    ],
    [{ parallel_tool_calls: false, tool_choice: "none" }, { type: "none" }],
  ])("%j", (fields, expected) => {
    expect(toMessages({ tools: chatTools, ...fields }).body.tool_choice).toEqual(expected);
  });

  it.each([
    ["auto", "auto"],
    ["required", "any"],
  ])("of allowed tools (%s) leaves the others out of the request", (mode, type) => {
    const allowed = [chatTools[2], chatTools[0]] as JsonObject[];
    const { body } = toMessages({
      tools: chatTools,
      tool_choice: { type: "allowed_tools", allowed_tools: { mode, tools: allowed } },
    });
    expect((body.tools as JsonObject[]).map((tool) => tool.name)).toEqual(["a", "c"]);
    expect(body.tool_choice).toEqual({ type });
  });

  it.each<[JsonObject["x"], JsonObject]>([
    ["auto", { type: "auto", disable_parallel_tool_use: true }],
    [{ name: "f" }, { type: "tool", name: "f", disable_parallel_tool_use: true }],
    [undefined, { type: "auto", disable_parallel_tool_use: true }],
  ])("of legacy functions (%j) asks for one call at a time, since function_call holds one", (function_call, expected) => {
    expect(toMessages({ functions: [{ name: "f" }], function_call }).body.tool_choice).toEqual(expected);
  });

  const allowed = (config: JsonObject): JsonObject => ({ type: "allowed_tools", allowed_tools: config });
  it.each<[JsonObject, string]>([
    [{ tool_choice: "required" }, "tool_choice"],
    [{ function_call: { name: "f" } }, "function_call"],
    [{ tools: chatTools, tool_choice: "sometimes" }, "tool_choice"],
    [{ tools: chatTools, tool_choice: { type: "custom", custom: { name: "a" } } }, "tool_choice.type"],
    [{ tools: chatTools, tool_choice: { type: "function" } }, "tool_choice.function"],
    [{ tools: chatTools, tool_choice: allowed({ mode: "never", tools: chatTools }) }, "tool_choice.allowed_tools.mode"],
    [{ tools: chatTools, tool_choice: allowed({ mode: "auto", tools: [] }) }, "tool_choice.allowed_tools.tools"],
    [
      { tools: chatTools, tool_choice: allowed({ mode: "auto", tools: [{ function: { name: "z" } }] }) },
      "tool_choice.allowed_tools.tools",
    ],
    [{ tools: chatTools, parallel_tool_calls: "no" }, "parallel_tool_calls"],
  ])("is refused where it can't hold: %j", (fields, field) => {
    expect(refusal(() => toMessages(fields)).field).toBe(field);
  });
});
