import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";
import { showBlock } from "../../browser/console-block.ts";

/** A part of a JSON Schema as its text, because `then` is a reserved member of promises. */
const withFields = (type: string) =>
  JSON.parse(
    `{ "if": { "properties": { "type": { "const": "${type}" } }, "required": ["type"] },
       "then": { "properties": { "with": { "$ref": "#/$defs/${type}" } } } }`,
  ) as object;
const schema = {
  properties: {
    name: { type: "string", description: "Display name." },
    settings: { $ref: "#/$defs/settings" },
    nodes: { additionalProperties: { $ref: "#/$defs/node" } },
    list: { items: { properties: { first: {}, second: {} } } },
  },
  required: ["nodes"],
  $defs: {
    settings: { properties: { colour: { enum: ["red", "green"] }, isLoud: { type: "boolean" } } },
    node: {
      properties: { type: { type: "string", examples: ["http", "wait"] }, with: { type: "object" } },
      allOf: [withFields("http"), withFields("wait")],
    },
    http: { properties: { url: {}, method: {} } },
    wait: { properties: { seconds: {} } },
  },
};
const text = "name: Greet\n# A remark\nnodes:\n  first: { type: wait, count: 3 }\n";

interface Block {
  readonly props: Record<string, unknown>;
  readonly component: { goTo(line: number, column: number): void };
}
declare const block: Block;

describe.skipIf(findChromium() === undefined)("the editor for texts in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({ browser: browser(), isSignedIn: false });
    await showBlock(opened.page, "code-editor/CodeEditor.svelte", { label: "Definition", language: "yaml", value: text, schema });
    await editor().waitFor();
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  const editor = () => opened.page.getByRole("textbox", { name: "Definition", exact: true });
  const offered = () => opened.page.getByRole("option");
  const setProp = (name: string, value: unknown) =>
    opened.page.evaluate(({ name, value }) => void (block.props[name] = value), { name, value });
  const shown = () => opened.page.evaluate(() => block.props["value"]);
  const write = async (written: string) => {
    await editor().focus();
    await opened.page.keyboard.press("ControlOrMeta+a");
    await opened.page.keyboard.insertText(written);
    await expect.poll(shown).toBe(written);
  };
  const offers = async () => {
    await opened.page.keyboard.press("Control+Space");
    await offered().first().waitFor();
    const labels = await offered().locator(".cm-completionLabel").allTextContents();
    await opened.page.keyboard.press("Escape");
    await offered().first().waitFor({ state: "detached" });
    return labels.sort();
  };

  it("shows a text under its accessible name, without breaking the policy of the page", async () => {
    expect(await editor().textContent()).toContain("name: Greet");
    expect(opened.problems).toEqual([]);
  });

  it("gives the text that the user writes, and shows the text that the page sets", async () => {
    await write("name: Other\n");
    await setProp("value", text);
    await expect.poll(() => editor().textContent()).toContain("A remark");
  });

  it("passes Tab on to the next element, and back", async () => {
    await opened.page.evaluate(() => {
      const after = document.createElement("button");
      after.textContent = "After";
      document.querySelector("main")!.append(after);
    });
    await editor().focus();
    await opened.page.keyboard.press("Tab");
    expect(await opened.page.evaluate(() => document.activeElement?.textContent)).toBe("After");
    await opened.page.keyboard.press("Shift+Tab");
    await expect.poll(() => editor().evaluate((each) => each.matches(":focus"))).toBe(true);
    expect(await shown()).toBe(text);
  });

  it("marks faults that the page gives, also faults behind the end of the text, and goes to a place", async () => {
    await setProp("diagnostics", [
      { line: 4, column: 18, severity: "error", message: "Unknown node type." },
      { line: 99, column: 99, severity: "warning", message: "Something is missing." },
    ]);
    await expect.poll(() => editor().locator(".cm-lintRange-error").textContent()).toBe("wait");
    await opened.page.evaluate(() => block.component.goTo(4, 18));
    await opened.page.keyboard.insertText("long-");
    await expect.poll(shown).toContain("{ type: long-wait,");
    await opened.page.locator(".cm-lint-marker-error").hover();
    await opened.page.getByText("Unknown node type.").waitFor();
    await setProp("diagnostics", []);
    await expect.poll(() => editor().locator(".cm-lintRange").count()).toBe(0);
    await setProp("value", text);
  });

  it("offers the names and values of a JSON Schema in YAML, by the kind of node", async () => {
    await write("na");
    expect(await offers()).toContain("name");
    await write("name: A\nsettings:\n  ");
    expect(await offers()).toEqual(["colour", "isLoud"]);
    await write("settings:\n  colour: ");
    expect(await offers()).toEqual(["green", "red"]);
    await write("settings:\n  isLoud: true\n  c");
    expect(await offers()).toEqual(["colour"]);
    await write("nodes:\n  call:\n    type: http\n    with:\n      ");
    expect(await offers()).toEqual(["method", "url"]);
    await write("nodes:\n  call:\n    type: http\n  later:\n    type: wait\n    with:\n      ");
    expect(await offers()).toEqual(["seconds"]);
    await write("list:\n  - first: 1\n  - second: 2\n    ");
    expect(await offers()).toEqual(["first"]);
    await write("list:\n- first: 1\n- ");
    expect(await offers()).toEqual(["first", "second"]);
  });

  it("offers them in JSON", async () => {
    await setProp("language", "json");
    await write('{ "settings": { ""');
    await opened.page.keyboard.press("ArrowLeft");
    expect(await offers()).toEqual(["colour", "isLoud"]);
    await write('{ "settings": { "colour": ');
    expect(await offers()).toEqual(["green", "red"]);
    await write('{\n  "nodes": {\n    "call": {\n      "type": "http",\n      "with": {\n        ""\n      }\n    }\n  }\n}');
    await opened.page.evaluate(() => block.component.goTo(6, 10));
    expect(await offers()).toEqual(["method", "url"]);
    await write('{ "settings": { "colo"');
    await opened.page.keyboard.press("ArrowLeft");
    await opened.page.keyboard.press("Control+Space");
    await offered().first().click();
    await expect.poll(shown).toBe('{ "settings": { "colour": ');
    await setProp("language", "yaml");
    await setProp("value", text);
  });

  it("shows what the JSON Schema says about the name under the pointer, and about the name at the cursor", async () => {
    const help = editor().locator("xpath=ancestor::*[contains(@class,'cm-editor')]").locator(".cm-help");
    await write("name: A\nsettings:\n  colour: red\n");
    await editor().getByText("name", { exact: true }).hover();
    await expect.poll(() => help.textContent()).toBe("nameDisplay name.");
    await opened.page.mouse.move(0, 0);
    await help.waitFor({ state: "detached" });
    await opened.page.evaluate(() => block.component.goTo(3, 5));
    await opened.page.keyboard.press("ControlOrMeta+i");
    await expect.poll(() => help.textContent()).toBe("colourValues: red, green");
    await opened.page.keyboard.press("Escape");
    await help.waitFor({ state: "detached" });
    await setProp("language", "json");
    await write('{ "settings": { "colour": "red" } }');
    await opened.page.evaluate(() => block.component.goTo(1, 18));
    await opened.page.keyboard.press("ControlOrMeta+i");
    await expect.poll(() => help.textContent()).toBe("colourValues: red, green");
    await opened.page.keyboard.press("ArrowLeft");
    await help.waitFor({ state: "detached" });
    await setProp("language", "yaml");
    await setProp("value", text);
  });

  it("refuses edits while it is read-only", async () => {
    await setProp("isReadOnly", true);
    await editor().focus();
    await opened.page.keyboard.press("x");
    expect(await editor().getAttribute("aria-readonly")).toBe("true");
    expect(await shown()).toBe(text);
    await setProp("isReadOnly", false);
  });

  it("has no findings of axe, in light, in dark and on a phone", async () => {
    await setProp("value", `${text}# A long line\n`.repeat(40) + `# ${"long ".repeat(60)}`);
    await setProp("diagnostics", [{ line: 1, column: 1, severity: "error", message: "Wrong." }]);
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });
});
