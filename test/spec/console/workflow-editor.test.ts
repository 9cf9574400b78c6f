import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

const greet = `# Says hello
name: Greet
parameters: { type: object, properties: { name: { type: string, default: World } } }
nodes:
  hello: { type: transform, with: { value: "Hello \${{ parameters.name }}" } }
  each:
    type: map
    needs: [hello]
    with:
      items: "[1, 2]"
      nodes:
        double: { type: transform, with: { value: "\${{ item * 2 }}" } }
      result: nodes.double.output
outputs: { text: "\${{ nodes.hello.output }}" }
`;

/** Asks a model and a person. */
const asking = `
nodes:
  classify:
    type: model
    with:
      prompt: A bug?
      output: { type: object, required: [kind], properties: { kind: { enum: [bug, question] } } }
  ask:
    type: human_gate
    needs: [classify]
    with:
      title: Shall it go on?
      form: { type: object, required: [severity], properties: { severity: { type: integer, minimum: 2 } } }
outputs: { kind: "\${{ nodes.classify.output.kind }}" }
`;

describe.skipIf(findChromium() === undefined)("the editor of workflow definitions in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  let folder: string;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: { "workflows/greet.yaml": greet, "workflows/broken.yaml": "nodes:\n  a: { type: transfrom }\n" },
      config: { workflow: { definitionsDir: "workflows", editable: true } },
    });
    folder = join(opened.service.cwd, "workflows");
    opened.page.on("dialog", (asked) => void asked.accept());
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    writeFileSync(join(folder, "greet.yaml"), greet);
    rmSync(join(folder, "fresh.yaml"), { force: true });
    // A page without the edits of the test before.
    await opened.page.setViewportSize(DESKTOP);
    await opened.page.reload();
    await opened.signIn();
    await opened.page.getByRole("button", { name: "Sign out" }).waitFor();
  });

  const stored = (name = "greet") => readFileSync(join(folder, `${name}.yaml`), "utf8");
  const editor = (id = "greet") => opened.page.getByRole("textbox", { name: `Definition of ${id}`, exact: true });
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const dialog = () => opened.page.getByRole("dialog");
  const problems = () => opened.page.getByRole("status", { name: "Problems of the text" });
  const node = (id: string) => opened.page.locator(`.svelte-flow__node[data-id="${id}"]`);
  async function open(id = "greet") {
    await opened.page.evaluate((hash) => void (location.hash = hash), `#/workflows/${id}/edit`);
    await editor(id).waitFor();
  }
  async function write(text: string, id = "greet") {
    await editor(id).focus();
    await opened.page.keyboard.press("ControlOrMeta+a");
    await opened.page.keyboard.insertText(text);
  }

  it("shows the stored text with its graph, and leads there from the workflow", async () => {
    const { page } = opened;
    await page.evaluate(() => void (location.hash = "#/workflows/greet"));
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Edit greet" }).waitFor();
    await expect.poll(() => editor().textContent()).toContain("Says hello");
    await node("each.double").waitFor();
    expect(await problems().textContent()).toBe("No problems");
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("page-title");
  });

  it("checks the text while it is written, draws its graph, and goes to the place of a problem and of a node", async () => {
    const { page } = opened;
    await open();
    await write(greet.replace("type: map", "type: mop"));
    await expect.poll(() => problems().textContent()).toBe("1 error");
    await page.getByText("the graph of the last text without errors").waitFor();
    await page.getByRole("list", { name: "Problems" }).getByRole("button").click();
    await page.keyboard.press("ControlOrMeta+Delete");
    await page.keyboard.insertText("loop");
    await expect.poll(() => editor().textContent()).toContain("type: loop");
    await write(greet.replace("hello:", "salute:").replaceAll("[hello]", "[salute]").replace("nodes.hello", "nodes.salute"));
    await node("salute").waitFor();
    await expect.poll(() => problems().textContent()).toBe("No problems");
    await node("each.double").getByRole("button").click();
    await expect.poll(() => editor().evaluate((each) => each.matches(":focus"))).toBe(true);
    await page.keyboard.insertText("half_");
    await expect.poll(() => editor().textContent()).toContain("half_double: {");
  });

  it("offers the keys of the kind of node, and shows what they mean", async () => {
    const { page } = opened;
    await open();
    await write("nodes:\n  call:\n    type: http\n    with:\n      ");
    await page.keyboard.press("Control+Space");
    await page.getByRole("option", { name: /^url/ }).click();
    await expect.poll(() => editor().textContent()).toContain("url: ");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("End");
    await page.keyboard.press("Home");
    await page.keyboard.press("ControlOrMeta+i");
    await page.getByText("The kind of node.", { exact: true }).waitFor();
  });

  it("saves after it has shown what changes, and asks before unsaved edits are lost", async () => {
    const { page } = opened;
    await open();
    expect(await button("Save").isDisabled()).toBe(true);
    await write(greet.replace("Says hello", "Says good day"));
    await page.getByRole("link", { name: "greet", exact: true }).click();
    await page.getByRole("alertdialog", { name: "Leave without saving?" }).waitFor();
    await button("Stay").click();
    await editor().focus();
    await page.keyboard.press("ControlOrMeta+s");
    const changes = dialog().getByRole("region", { name: "Changes", exact: true });
    await changes.waitFor();
    expect(await changes.locator("[data-kind=removed] code").allTextContents()).toEqual(["Removed: # Says hello"]);
    expect(await changes.locator("[data-kind=added] code").allTextContents()).toEqual(["Added: # Says good day"]);
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    expect(stored()).toBe(greet.replace("Says hello", "Says good day"));
    await page.getByRole("link", { name: "greet", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Greet" }).waitFor();
  });

  it("keeps the text and shows both where the file was changed meanwhile, and saves over it when that is chosen", async () => {
    const { page } = opened;
    await open();
    await write(greet.replace("Says hello", "Mine"));
    writeFileSync(join(folder, "greet.yaml"), `${greet}# By hand\n`);
    await button("Save").click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog", { name: "The definition was changed meanwhile" }).waitFor();
    const theirs = dialog().getByRole("region", { name: "Changes made meanwhile" });
    expect(await theirs.locator("[data-kind=added] code").allTextContents()).toEqual(["Added: # By hand"]);
    const mine = dialog().getByRole("region", { name: "Changes", exact: true });
    expect(await mine.locator("[data-kind=removed] code").allTextContents()).toEqual([
      "Removed: # Says hello",
      "Removed: # By hand",
    ]);
    expect(stored()).toContain("By hand");
    expect(await findingsInEveryLook(page)).toEqual([]);
    await button("Keep editing").click();
    await expect.poll(() => editor().textContent()).toContain("Mine");
    await button("Save").click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    expect(stored()).toBe(greet.replace("Says hello", "Mine"));
  });

  it("takes the stored text in place of the own text when that is chosen", async () => {
    await open();
    await write(greet.replace("Says hello", "Mine"));
    writeFileSync(join(folder, "greet.yaml"), `${greet}# By hand\n`);
    await button("Save").click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await button("Use the stored text").click();
    await expect.poll(() => editor().textContent()).toContain("By hand");
    expect(await editor().textContent()).not.toContain("Mine");
    expect(await button("Save").isDisabled()).toBe(true);
  });

  it("goes to the first error instead of saving it", async () => {
    await open();
    await write(greet.replace("type: map", "type: mop"));
    await expect.poll(() => problems().textContent()).toBe("1 error");
    await button("Save").click();
    await opened.page.getByText("Correct the errors first").waitFor();
    expect(await dialog().count()).toBe(0);
    expect(await editor().evaluate((each) => each.matches(":focus"))).toBe(true);
    expect(stored()).toBe(greet);
  });

  it("tests the text with parameters, shows how the result differs from the expectation, and lights up the graph", async () => {
    const { page } = opened;
    await open();
    await write(greet.replace("Hello", "Good day"));
    await button("Test with parameters").click();
    await dialog().getByLabel("Name of the case").fill("Ada is greeted");
    await dialog().getByLabel("name (optional)").fill("Ada");
    await dialog().getByRole("button", { name: "Add and run" }).click();
    const result = page.getByRole("status", { name: "Result of the cases" });
    await expect.poll(() => result.textContent()).toContain("1 of 1 passed");
    const cases = page.getByRole("textbox", { name: "Cases of greet" });
    expect(await cases.textContent()).toContain("name: Ada is greeted    parameters:      name: Ada");
    await cases.focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText(
      `cases:\n  - { name: one, parameters: { name: Ada }, expect: { status: completed, outputs: { text: Hello Ada } } }\n`,
    );
    await expect.poll(() => result.textContent()).toContain("The text has changed since");
    await button("Run the cases").click();
    await expect.poll(() => result.textContent()).toContain("0 of 1 passed");
    await page.getByText('outputs.text: expected "Hello Ada", got "Good day Ada"').waitFor();
    const sides = page.getByRole("region", { name: "Expectation and result of one" });
    expect(await sides.locator("[data-kind=removed] code").allTextContents()).toEqual(["Expected:   text: Hello Ada"]);
    expect(await sides.locator("[data-kind=added] code").allTextContents()).toEqual(["Got:   text: Good day Ada"]);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await button("Show in the graph: one").click();
    await page.getByText("It shows the case “one”.").waitFor();
    await expect.poll(() => node("hello").locator("[data-status]").getAttribute("data-status")).toBe("completed");
    expect(stored()).toBe(greet);
  });

  it("adds answers and decisions to a case with which the run completes", async () => {
    const { page } = opened;
    await open();
    await write(asking);
    await expect.poll(() => problems().textContent()).toBe("No problems");
    await button("Test with parameters").click();
    await dialog().getByRole("button", { name: "Add and run" }).click();
    await page.getByRole("status", { name: "Result of the cases" }).getByText("1 of 1 passed").waitFor();
    const cases = await page.getByRole("textbox", { name: "Cases of greet" }).textContent();
    expect(cases).toContain("output:          kind: bug");
    expect(cases).toContain("decision: approve        values:          severity: 2");
  });

  it("shows why cases cannot be executed, and keeps them while other pages are shown", async () => {
    const { page } = opened;
    await open();
    const cases = page.getByRole("textbox", { name: "Cases of greet" });
    await cases.focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText(`cases:\n  - { name: one, nodes: { hallo: { output: 1 } }, expect: { status: completed } }\n`);
    await button("Run the cases").click();
    await page.getByText('case "one": hallo: The definition has no such node').waitFor();
    await page.getByRole("link", { name: "greet", exact: true }).click();
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    await expect.poll(() => cases.textContent()).toContain("hallo");
  });

  it("says that the outputs of a case were left out because they are long", async () => {
    const { page } = opened;
    await open();
    await write(
      `nodes: { a: { type: code, with: { source: 'return "x".repeat(70000)' } } }\noutputs: { text: "\${{ nodes.a.output }}" }\n`,
    );
    await expect.poll(() => problems().textContent()).toBe("No problems");
    const cases = page.getByRole("textbox", { name: "Cases of greet" });
    const result = page.getByRole("status", { name: "Result of the cases" });
    for (const [expected, told] of [
      ["status: completed", "The outputs are too long to be shown here."],
      ["status: completed, outputs: { text: short }", "outputs: (too long to be shown)"],
    ] as const) {
      await cases.focus();
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.insertText(`cases:\n  - { name: long, expect: { ${expected} } }\n`);
      await button("Run the cases").click();
      await page.getByText(told).waitFor();
    }
    await result.getByText("0 of 1 passed").waitFor();
  });

  it("starts the saved definition when that is chosen", async () => {
    const { page } = opened;
    await open();
    await write(greet.replace("Hello", "Good day"));
    await button("Save").click();
    await dialog().getByLabel("Start after saving").check();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog", { name: "Start Greet" }).getByLabel("name").fill("Ada");
    await dialog().getByRole("button", { name: "Start", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Run of Greet" }).waitFor();
    await page.getByText("Good day Ada").first().waitFor();
  });

  it("creates a workflow", async () => {
    const { page } = opened;
    await opened.goTo("Workflows");
    await button("New workflow").click();
    await dialog().getByLabel("Id").fill("greet");
    await dialog().getByText("A workflow with this id exists already.").waitFor();
    await dialog().getByLabel("Id").fill("fresh one");
    await dialog().getByText("Use 1 to 64 ASCII letters").waitFor();
    await dialog().getByLabel("Id").fill("fresh");
    await expect.poll(() => dialog().getByRole("alert").count()).toBe(0);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await button("Open the editor").click();
    await editor("fresh").waitFor();
    await page.getByRole("heading", { level: 1, name: "New workflow fresh" }).waitFor();
    await button("Create").click();
    await dialog().getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Edit fresh" }).waitFor();
    expect(stored("fresh")).toContain("name: Hello");
    await page.getByRole("link", { name: "fresh", exact: true }).waitFor();
  });

  it("opens a file that cannot be used, to mend it", async () => {
    await opened.goTo("Workflows");
    await opened.page.getByRole("link", { name: "broken.yaml" }).click();
    await editor("broken").waitFor();
    await expect.poll(() => problems().textContent()).toBe("1 error");
    await opened.page.getByText("No graph yet").waitFor();
  });

  it("keeps the line ends of the file", async () => {
    const before = greet.replaceAll("\n", "\r\n");
    writeFileSync(join(folder, "greet.yaml"), before);
    await open();
    expect(await button("Save").isDisabled()).toBe(true);
    await write(greet.replace("Says hello", "Mine"));
    await button("Save").click();
    await dialog().getByText("1 line added, 1 line removed").waitFor();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await opened.page.getByText("Saved", { exact: true }).waitFor();
    expect(stored()).toBe(before.replace("Says hello", "Mine"));
  });

  it("shows text and graph as tabs on a phone, and keeps the history of the text", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    await open();
    await write(greet.replace("Says hello", "Mine"));
    await page.getByRole("tab", { name: "Graph" }).click();
    await node("each.double").getByRole("button").click();
    await page.getByRole("tab", { name: "Text", selected: true }).waitFor();
    await editor().focus();
    await page.keyboard.press("ControlOrMeta+z");
    await expect.poll(() => editor().textContent()).toContain("Says hello");
  });

  it("has no findings of axe, in light, in dark and on a phone", async () => {
    await open();
    await write(greet.replace("type: map", "type: mop"));
    await expect.poll(() => problems().textContent()).toBe("1 error");
    await node("each.double").waitFor();
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });
});

describe.skipIf(findChromium() === undefined)("the editor of workflow definitions of an instance that allows no edits", () => {
  const browser = useChromium();

  it("shows the text read-only, with the setting that allows edits", async () => {
    await using opened = await openConsole({
      browser: browser(),
      files: { "workflows/greet.yaml": greet },
      config: { workflow: { definitionsDir: "workflows" } },
    });
    const { page } = opened;
    await opened.goTo("Workflows");
    expect(await page.getByRole("button", { name: "New workflow" }).count()).toBe(0);
    await page.getByRole("link", { name: "Greet" }).click();
    await page.getByRole("link", { name: "Text", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Definition of greet" }).waitFor();
    await page.getByRole("note").getByText("PORTICO_WORKFLOW_EDITABLE").waitFor();
    const text = page.getByRole("textbox", { name: "Definition of greet" });
    expect(await text.getAttribute("aria-readonly")).toBe("true");
    expect(await page.getByRole("button", { name: "Save" }).count()).toBe(0);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.evaluate(() => void (location.hash = "#/workflows/unknown/edit"));
    await page.getByText("There is no workflow unknown").waitFor();
  });
});
