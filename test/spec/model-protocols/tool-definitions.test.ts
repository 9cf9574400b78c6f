import { describe, expect, it } from "vitest";
import { type ChatFields, type MessagesFields, refusal, toChat, toMessages } from "./converted.ts";

const schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };

describe("tools of Messages become function tools", () => {
  it("with name, description, schema and strictness", () => {
    const { body, dropped } = toChat({ tools: [{ name: "weather", description: "d", input_schema: schema, strict: true }] });
    const expected = {
      tools: [{ type: "function", function: { name: "weather", description: "d", parameters: schema, strict: true } }],
    } satisfies ChatFields;
    expect(body).toMatchObject(expected);
    expect(dropped).toEqual([]);
  });

  it("and share the schema instead of copying it", () => {
    const { body } = toChat({ tools: [{ type: "custom", name: "weather", input_schema: schema }] });
    const [tool] = body.tools as unknown as [{ function: { parameters: unknown } }];
    expect(tool.function.parameters).toBe(schema);
  });

  it("without what only tunes the loading of a tool, which is named", () => {
    const tool = {
      name: "a",
      input_schema: schema,
      cache_control: { type: "ephemeral" },
      defer_loading: true,
      input_examples: [{}],
    };
    const { body, dropped } = toChat({ tools: [tool, { ...tool, name: "b" }] });
    expect(body.tools).toHaveLength(2);
    expect(dropped).toEqual(["cache_control", "tools.defer_loading", "tools.input_examples"]);
  });

  it.each([
    ["web_search", "web_search_20250305"],
    ["code_execution", "code_execution_20250825"],
    ["bash", "bash_20250124"],
    ["str_replace_based_edit_tool", "text_editor_20250728"],
    ["computer", "computer_20250124"],
    ["memory", "memory_20250818"],
  ])("but %s of its provider's own type is refused by name", (name, type) => {
    const refused = refusal(() =>
      toChat({
        tools: [
          { name: "mine", input_schema: schema },
          { type, name },
        ],
      }),
    );
    expect(refused.field).toBe("tools.1");
    expect(refused.message).toContain(`"${name}"`);
    expect(refused.message).toContain(`"${type}"`);
  });

  it("and a toolset without a name is refused by its type", () => {
    expect(refusal(() => toChat({ tools: [{ type: "mcp_toolset", mcp_server_name: "x" }] })).message).toContain('"mcp_toolset"');
  });

  it.each([
    [{ tools: {} }, "tools"],
    [{ tools: [1] }, "tools.0"],
    [{ tools: [{ input_schema: schema }] }, "tools.0.name"],
    [{ tools: [{ name: "", input_schema: schema }] }, "tools.0.name"],
    [{ tools: [{ name: "a" }] }, "tools.0.input_schema"],
    [{ tools: [{ name: "a", input_schema: [] }] }, "tools.0.input_schema"],
    [{ tools: [{ name: "a", input_schema: schema, description: 1 }] }, "tools.0.description"],
    [{ tools: [{ name: "a", input_schema: schema, allowed_callers: ["code_execution_20260120"] }] }, "tools.0.allowed_callers"],
  ])("and a malformed list is refused at its place: %j", (fields, field) => {
    expect(refusal(() => toChat(fields)).field).toBe(field);
  });

  it("and an empty list says nothing", () => {
    expect(toChat({ tools: [] }).body).not.toHaveProperty("tools");
  });
});

describe("function tools become tools of Messages", () => {
  it("with name, description, schema and strictness", () => {
    const tool = { type: "function", function: { name: "weather", description: "d", parameters: schema, strict: true } };
    const expected = {
      tools: [{ name: "weather", description: "d", input_schema: schema, strict: true }],
    } satisfies MessagesFields;
    expect(toMessages({ tools: [tool] }).body).toMatchObject(expected);
  });

  it.each([
    ["no parameters", undefined, { type: "object", properties: {} }],
    ["null parameters", null, { type: "object", properties: {} }],
    ["parameters without a type", { properties: { a: {} } }, { type: "object", properties: { a: {} } }],
  ])("with a schema of an object for %s", (_, parameters, expected) => {
    const { body } = toMessages({ tools: [{ type: "function", function: { name: "now", strict: null, parameters } }] });
    expect(body.tools).toEqual([{ name: "now", input_schema: expected }]);
  });

  it("and legacy functions too, after the tools", () => {
    const tools = [{ type: "function", function: { name: "new" } }];
    const { body } = toMessages({ tools, functions: [{ name: "old", description: "d", parameters: schema }] });
    expect(body.tools).toEqual([
      { name: "new", input_schema: { type: "object", properties: {} } },
      { name: "old", description: "d", input_schema: schema },
    ]);
  });

  it.each([
    [{ type: "custom", custom: { name: "grammar" } }, ['"grammar"', '"custom"']],
    [{ type: "web_search" }, ['"web_search"']],
    [{ type: "x".repeat(1000) }, ["this one"]],
  ])("but one of another type is refused by name: %j", (tool, words) => {
    const refused = refusal(() => toMessages({ tools: [tool] }));
    expect(refused.field).toBe("tools.0");
    for (const word of words) expect(refused.message).toContain(word);
    expect(refused.message.length).toBeLessThan(200);
  });

  it.each([
    [{ tools: [{ type: "function" }] }, "tools.0.function"],
    [{ tools: [{ type: "function", function: { name: 1 } }] }, "tools.0.function.name"],
    [{ tools: [{ function: { name: "a", parameters: { type: "array" } } }] }, "tools.0.function.parameters.type"],
    [{ tools: [{ function: { name: "a", strict: "yes" } }] }, "tools.0.function.strict"],
    [{ functions: [{}] }, "functions.0.name"],
  ])("and a malformed list is refused at its place: %j", (fields, field) => {
    expect(refusal(() => toMessages(fields)).field).toBe(field);
  });

  it("and what no tool has there is dropped and named", () => {
    const { dropped } = toMessages({ tools: [{ type: "function", function: { name: "a", examples: [1] }, defer: true }] });
    expect(dropped).toEqual(["tools.defer", "tools.function.examples"]);
  });
});
