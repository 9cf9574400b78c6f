import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeCost } from "../../../console/src/blocks/write-cost.ts";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";
import { root } from "../../rooms/repository.ts";

const example = (name: string) => readFileSync(resolve(root, "playground/workflows", name), "utf8");
/** Fails inside of a `map`, which runs one item at a time: a failed item cancels those that run beside it. */
const check = `
name: Check numbers
parameters: { type: object, properties: { limit: { type: integer, default: 1 } } }
nodes:
  begin: { type: transform, name: Begin, with: { value: "\${{ parameters.limit }}" } }
  each:
    type: map
    name: Each number
    needs: [begin]
    with:
      items: "[3, 0]"
      concurrency: 1
      nodes:
        look:
          type: code
          name: Look
          with: { input: "\${{ item }}", source: "if (input < 1) throw new Error('Too small'); return input" }
      result: nodes.look.output
  end: { type: transform, name: End, needs: [each], with: { value: done } }
outputs: { all: "\${{ nodes.each.output }}" }
`;
/** Its output shows the word, and the length of the key, which is a secret. */
const echo = `
parameters:
  type: object
  required: [word]
  properties: { word: { type: string, maxLength: 9 }, key: { type: string }, note: { type: string }, times: { type: integer } }
nodes:
  say: { type: transform, with: { value: "\${{ parameters.word }}: \${{ size(parameters.key) }}" } }
outputs: { said: "\${{ nodes.say.output }}" }
`;

describe.skipIf(findChromium() === undefined)("the trace of a run in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/support/agent.json": { name: "Support" },
        "agents/boss/agent.json": { name: "Boss", tools: ["DelegateToAgent"] },
        "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
        "workflows/check.yaml": check,
        "workflows/echo.yaml": echo,
        "workflows/bare.yaml": "nodes: { go: { type: transform, with: { value: 1 } } }\n",
        "workflows/triage.yaml": example("triage.yaml"),
      },
      config: {
        workflow: { definitionsDir: "workflows", secrets: { TRACKER: "tracker-secret" } },
        prices: { currency: "EUR", models: [{ model: "demo", from: "2026-01-01", input: 200_000, output: 200_000 }] },
      },
    });
    await opened.goTo("Workflows");
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  const tree = () => opened.page.getByRole("tree");
  const line = (name: string | RegExp) => tree().getByRole("treeitem", { name });
  const selected = () => tree().locator('[aria-selected="true"]').locator(".title").first().textContent();
  const focused = () => opened.page.evaluate(() => document.activeElement?.querySelector(".title")?.textContent);
  const panel = (title: string) => opened.page.getByRole("region", { name: title, exact: true });
  const status = () => opened.page.getByRole("status", { name: "Status of the run" });
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const show = (hash: string) => opened.page.evaluate((to) => void (location.hash = to), hash);
  const place = () => opened.page.evaluate(() => location.hash);
  /** Starts a workflow in its form, and shows the run. */
  async function start(id: string, fields: Readonly<Record<string, string>> = {}) {
    await show(`#/workflows/${id}`);
    await button("Start").click();
    const dialog = opened.page.getByRole("dialog");
    for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label).fill(value);
    await dialog.getByRole("button", { name: "Start" }).click();
    await opened.page.getByRole("heading", { level: 1, name: /^Run of / }).waitFor();
  }
  /** Runs the shown run's test with the command line. */
  async function runAsTest(name: string) {
    const { page, service } = opened;
    await button("Open as a test").click();
    const yaml = (await page.getByRole("group", { name: "file of cases" }).textContent())!;
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    mkdirSync(join(service.cwd, "cases"), { recursive: true });
    writeFileSync(join(service.cwd, "cases", name), yaml);
    const { code, stdout, stderr } = await service.run("workflow", "test", `cases/${name}`);
    return { code, said: stdout + stderr, yaml };
  }

  it("of a workflow selects the failed node when it is opened, with its inputs and its error", async () => {
    const { page } = opened;
    await start("check");
    await status().getByText("Failed").waitFor();
    const run = await place();
    await show("#/runs");
    await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await show(run);
    await status().getByText("Failed").waitFor();
    await expect.poll(selected).toBe("Look");
    await panel("Look").getByText("each[1].look").waitFor();
    await panel("Look").locator(".error").getByText("Too small").waitFor();
    expect(await panel("Look").locator(".json").first().textContent()).toContain("0");
    expect(await line("End").textContent()).toContain("Cancelled");
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("is a tree for the keyboard: one stop of Tab, arrows between lines, and lines that open and close", async () => {
    const { page } = opened;
    await line(/^each\[1\]/).click();
    await page.keyboard.press("Home");
    expect([await selected(), await focused()]).toEqual(["Begin", "Begin"]);
    await panel("Begin").getByText("Completed").waitFor();
    await page.keyboard.press("ArrowDown");
    expect(await focused()).toBe("Each number");
    const count = await tree().getByRole("treeitem").count();
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => tree().getByRole("treeitem").count()).toBe(3);
    expect(await line("Each number").getAttribute("aria-expanded")).toBe("false");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => tree().getByRole("treeitem").count()).toBe(count);
    await page.keyboard.press("ArrowRight");
    expect(await focused()).toBe("each[0]");
    expect(await line("each[0]").getAttribute("aria-level")).toBe("2");
    await page.keyboard.press("ArrowLeft");
    expect([await focused(), await line("each[0]").getAttribute("aria-expanded")]).toEqual(["each[0]", "false"]);
    await page.keyboard.press("ArrowLeft");
    expect(await focused()).toBe("Each number");
    await page.keyboard.press("End");
    expect(await focused()).toBe("End");
    expect(await tree().locator('[tabindex="0"]').count()).toBe(1);
  });

  it("is used on a phone: nothing beside the page, and the detail below", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    await line("Begin").click();
    await panel("Begin").getByText("Completed").waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);
    const [lines, detail] = [(await tree().boundingBox())!, (await panel("Begin").boundingBox())!];
    expect(detail.y).toBeGreaterThan(lines.y + lines.height);
    await page.setViewportSize(DESKTOP);
  });

  it("of a workflow becomes a test that passes: a run that failed", async () => {
    const { code, said, yaml } = await runAsTest("failed.yaml");
    expect(yaml).toContain("status: failed");
    expect([code, said]).toEqual([0, expect.stringContaining("like wrun_")]);
  });

  it("of a workflow becomes a test in the editor, ready to be executed, and a changed test stays", async () => {
    const { page } = opened;
    const run = await place();
    const cases = page.getByRole("textbox", { name: "Cases of check" });
    const openEditor = async () => {
      await button("Open as a test").click();
      await button("Open in the editor").click();
      await cases.waitFor();
    };
    await openEditor();
    expect(await place()).toBe("#/workflows/check/edit");
    const name = `like ${decodeURIComponent(run.split("/").at(-1)!)}`;
    await expect.poll(() => cases.textContent()).toContain(`name: ${name}`);
    await expect.poll(() => button("Run the cases").evaluate((each) => each === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await page.getByRole("status", { name: "Result of the cases" }).getByText("1 of 1 passed").waitFor();
    await cases.focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText(`cases:\n  - { name: ${name}, parameters: { limit: 7 }, expect: { status: failed } }\n`);
    await page.setViewportSize(PHONE);
    await show(run);
    await openEditor();
    await page.setViewportSize(DESKTOP);
    await expect.poll(() => cases.textContent()).toContain("limit: 7");
    expect(((await cases.textContent())!.match(/name: like/g) ?? []).length).toBe(1);
    await cases.focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText("cases: [");
    await show(run);
    await button("Open as a test").click();
    await button("Open in the editor").click();
    await page.getByRole("dialog").getByText("The cases are not valid YAML. Correct them first").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  });

  it("of a workflow is resumed from a node, as a new run", async () => {
    const before = await place();
    await line("Begin").click();
    await button("Resume from here").click();
    await opened.page.getByRole("alertdialog", { name: "Resume this run from begin?" }).waitFor();
    await opened.page.getByRole("alertdialog").getByRole("button", { name: "Resume the run" }).click();
    await expect.poll(place).not.toBe(before);
    await status().getByText("Failed").waitFor();
    const old = decodeURIComponent(before.split("/").at(-1)!);
    await opened.page.getByRole("link", { name: old }).waitFor();
    expect(await line("Begin").textContent()).not.toContain("taken over");
  });

  it("of a workflow leads to another run with changed parameters: masked ones stay the same, and none is removed", async () => {
    const { page } = opened;
    await start("echo", { word: "one", "key (optional)": "tracker-secret", "note (optional)": "a  b" });
    await status().getByText("Completed").waitFor();
    await panel("Outputs of the run").getByText("one: 14").waitFor();
    const before = await place();
    await button("Run again").click();
    const dialog = page.getByRole("dialog", { name: "Run echo again" });
    await dialog.getByText("Masked parameters stay the same: key.").waitFor();
    expect(await dialog.getByRole("textbox").evaluateAll((all) => all.map((each) => (each as HTMLInputElement).value))).toEqual([
      "one",
      "a  b",
      "",
    ]);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await dialog.getByLabel("note (optional)").fill("");
    await dialog.getByRole("button", { name: "Run again" }).click();
    await dialog.getByText("The parameter cannot be removed. Enter a value.").waitFor();
    await dialog.getByLabel("note (optional)").fill("a  b");
    await dialog.getByLabel("word").fill("far too long");
    await dialog.getByRole("button", { name: "Run again" }).click();
    await expect.poll(() => dialog.getByRole("alert").count()).toBe(1);
    expect(await place()).toBe(before);
    await dialog.getByLabel("word").fill("two");
    await dialog.getByLabel("times (optional)").fill("3");
    await dialog.getByRole("button", { name: "Run again" }).click();
    await expect.poll(place).not.toBe(before);
    await panel("Outputs of the run").getByText("two: 14").waitFor();
    expect(await panel("Parameters").textContent()).toMatch(/two.*\*\*\*.*a  b.*3/s);
  });

  it("of a workflow asks before another run of it, if it has no parameters to change", async () => {
    const { page } = opened;
    await start("bare");
    await status().getByText("Completed").waitFor();
    const before = await place();
    await button("Run again").click();
    const again = () =>
      page.getByRole("alertdialog", { name: "Run this workflow again?" }).getByRole("button", { name: "Run again" }).click();
    await again();
    await expect.poll(place).not.toBe(before);
    // The list of runs leads to the same question.
    await show("#/workflows/bare");
    const first = page
      .getByRole("table", { name: "Runs" })
      .getByRole("row")
      .filter({ has: page.locator(`a[href="${before}"]`) });
    await first.getByRole("link", { name: "Run again" }).click();
    await again();
    await expect.poll(place).not.toContain(before);
  });

  it("of a workflow is put beside another run: the nodes that differ, with both values", async () => {
    const { page } = opened;
    await start("check");
    await status().getByText("Failed").waitFor();
    const earlier = decodeURIComponent((await place()).split("/").at(-1)!);
    await start("check", { limit: "5" });
    await status().getByText("Failed").waitFor();
    await page.getByRole("link", { name: "Compare" }).click();
    const other = page.getByLabel("The other run");
    await expect.poll(() => other.evaluate((field) => field === document.activeElement)).toBe(true);
    const choices = other.locator("option:not([value=''])");
    const word = page.getByRole("searchbox", { name: "Find a run" });
    await word.fill("nothing has failed like this");
    await other.getByText("No run matches").waitFor({ state: "attached" });
    await word.fill(earlier);
    await expect.poll(() => choices.allTextContents()).toEqual([expect.stringContaining(earlier)]);
    await word.fill("no-such-parameter=1");
    await page.getByRole("alert").getByText("does not declare no-such-parameter").waitFor();
    await word.fill("");
    await other.selectOption(earlier);
    await page.getByText("1 of 5 nodes differ.").waitFor();
    const rows = page.getByRole("table", { name: "Compared nodes" }).getByRole("row");
    expect(await rows.nth(1).textContent()).toContain("Begin");
    await rows.nth(1).getByRole("button").click();
    const outputs = page.getByRole("region", { name: "Differences of begin" }).locator(".sides").last();
    expect(await outputs.locator(".value").allTextContents()).toEqual(["5", "1"]);
    await page.getByRole("checkbox", { name: "Show all nodes" }).check();
    await expect.poll(() => rows.count()).toBeGreaterThan(2);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("link", { name: "Close the comparison" }).click();
    await expect.poll(() => other.count()).toBe(0);
  });

  it("of a workflow becomes a test that passes: a run with answers of a model and an agent, and a decision", async () => {
    await start("triage", { ticket: "The export is empty" });
    await button("Reject").click();
    await status().getByText("Completed").waitFor();
    const { code, said, yaml } = await runAsTest("rejected.yaml");
    expect(yaml).toContain("decision: reject");
    expect([code, said]).toEqual([0, expect.stringContaining("like wrun_")]);
  });

  it("of an agent shows the parts of a turn with arguments, input and output; the failed part is selected", async () => {
    const { page, service, token } = opened;
    await using client = connectAgent({ baseURL: service.url("agent"), token });
    const prompt = 'DelegateToAgent {"agentId":"support","prompt":"Count sheep"}';
    const worked = client.submit({ agentId: "boss", prompt });
    await worked.ended;
    await show(`#/runs/${(await worked.started)!.runId}`);
    await line(/^Tool DelegateToAgent/).click();
    const detail = page.getByRole("region", { name: "Selected part" });
    expect(await detail.locator(".json").textContent()).toMatch(/agentId.*support.*prompt.*Count sheep/s);
    await line(/^Model/)
      .first()
      .click();
    await detail.getByRole("heading", { name: "Prompt: what was new to this call" }).waitFor();
    expect(await detail.getByRole("group", { name: "Prompt" }).textContent()).toBe(prompt);
    await line(/^Model/)
      .last()
      .click();
    await detail.getByRole("heading", { name: "Answer" }).waitFor();
    // What the tool returned is new to the last call.
    const result = await detail.getByRole("group", { name: "Prompt" }).textContent();
    await line(/^Tool DelegateToAgent/).click();
    await detail.getByRole("heading", { name: "Output of the tool" }).waitFor();
    expect(await detail.getByRole("group", { name: "Output of the tool" }).textContent()).toBe(result);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await line(/^Accepted/).click();
    await page.keyboard.press("ArrowDown");
    expect(await focused()).toBe("Waited in the queue");

    const failed = client.submit({ agentId: "broken", prompt: "Break" });
    await failed.ended;
    const { runId } = (await failed.started)!;
    await show(`#/runs/${runId}`);
    const { receipts } = await opened.call("GET", `/api/runs/${runId}/receipt`);
    await detail.getByText(receipts[0].failure.message).waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("of an agent shows what its model calls used and cost, and adds it up", async () => {
    const { page, service, token } = opened;
    await using client = connectAgent({ baseURL: service.url("agent"), token });
    const asked = client.submit({ agentId: "support", prompt: "What does it cost?" });
    await asked.ended;
    const { runId } = (await asked.started)!;
    const { turns } = await opened.call("GET", `/api/runs/${runId}/trace`);
    const { cost } = turns[0].trace.usage;
    const money = writeCost(cost, "EUR");
    await show(`#/runs/${runId}`);
    await line(/^Model/).click();
    const detail = page.getByRole("region", { name: "Selected part" });
    await detail.getByText(money).waitFor();
    await page.getByText(/In this turn: 1 model call · .* tokens in · .* out · /).waitFor();
    expect(await page.getByText(/In this turn:/).textContent()).toContain(money);
    expect(await page.locator("dl > div").filter({ hasText: "Cost" }).first().textContent()).toContain(money);
  });

  it("of an agent is put beside a turn of another run, or of the same run: the parts that differ, with both values", async () => {
    const { page, service, token } = opened;
    await using client = connectAgent({ baseURL: service.url("agent"), token });
    const played = async (prompt: string, sessionId?: string) => {
      const turn = client.submit({ agentId: "support", prompt, ...(sessionId !== undefined && { sessionId }) });
      await turn.ended;
      return (await turn.started)!;
    };
    const other = await played("Say one");
    const one = await played("Say two");
    await show(`#/runs/${one.runId}`);
    await page.getByRole("link", { name: "Compare" }).click();
    const choice = page.getByLabel("The other run");
    await expect.poll(() => choice.evaluate((field) => field === document.activeElement)).toBe(true);
    const choices = choice.locator("option:not([value=''])");
    const word = page.getByRole("searchbox", { name: "Find a run" });
    await word.fill("SAY ONE");
    await expect.poll(() => choices.allTextContents()).toEqual([expect.stringMatching(/, Say one$/)]);
    await word.fill(other.runId!);
    await expect.poll(() => choices.allTextContents()).toEqual([expect.stringMatching(/, Say one$/)]);
    await word.fill(one.runId!);
    await choice.getByText("No run matches").waitFor({ state: "attached" });
    await word.fill("one");
    await choice.selectOption(other.runId!);
    await page.getByText(/1 of \d+ parts differ\./).waitFor();
    const rows = page.getByRole("table", { name: "Compared parts" }).getByRole("row");
    expect(await rows.nth(1).textContent()).toContain("Model demo");
    await rows.nth(1).getByRole("button").click();
    const inputs = page.getByRole("region", { name: "Differences of Model demo" }).locator(".sides").first();
    expect(await inputs.locator(".value").allTextContents()).toEqual(["Say two", "Say one"]);
    await page.getByRole("checkbox", { name: "Show all parts" }).check();
    await expect.poll(() => rows.count()).toBeGreaterThan(2);
    expect(await findingsInEveryLook(page)).toEqual([]);

    await played("Say three", one.sessionId);
    await page.getByRole("link", { name: "Close the comparison" }).click();
    await expect.poll(() => choice.count()).toBe(0);
    await page.getByRole("link", { name: "Compare" }).click();
    await choice.selectOption(one.runId!);
    await rows.nth(1).getByRole("button").click();
    expect(await inputs.locator(".value").allTextContents()).toEqual(["Say three", "Say two"]);
  });
});
