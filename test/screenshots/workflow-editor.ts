import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser } from "../browser/chromium.ts";
import { openConsole } from "../browser/console.ts";
import type { Gallery } from "./gallery.ts";

const triage = readFileSync(resolve(import.meta.dirname, "../../playground/workflows/triage.yaml"), "utf8");
const cases = `cases:
  - name: a bug is filed after an approval
    parameters: { ticket: It crashes }
    nodes:
      classify: { output: { kind: bug } }
      file: { output: { status: 201, headers: {}, body: { id: 7 } } }
      reply: { output: { text: Thank you } }
    gates:
      approve: { decision: approve, values: { severity: 2 } }
    expect: { status: completed }
  - name: a question is answered
    parameters: { ticket: How does it work? }
    nodes:
      classify: { output: { kind: question } }
      reply: { output: { text: Like this } }
    expect:
      status: completed
      outputs: { kind: question, issue: null, answer: Like that }
      nodes: { file: skipped, reply: completed }
`;

/** Pictures of the editor of definitions: a text with an error beside its graph, and test cases of which one fails. */
export async function takeWorkflowEditor(browser: Browser, save: (name: string) => string, gallery: Gallery): Promise<void> {
  await using opened = await openConsole({
    browser,
    files: { "workflows/triage.yaml": triage, "agents/support/agent.json": { name: "Support" } },
    config: { workflow: { definitionsDir: "workflows", editable: true, secrets: { TRACKER: "of the tracker" } } },
    context: { colorScheme: "light", viewport: { width: 1280, height: 900 } },
  });
  const { page } = opened;
  await page.evaluate(() => (location.hash = "#/workflows/triage/edit"));
  const write = async (name: string, text: string) => {
    await page.getByRole("textbox", { name }).focus();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText(text);
  };
  await page.getByRole("textbox", { name: "Definition of triage" }).waitFor();
  await page.getByText("Answer the ticket", { exact: true }).first().waitFor();
  await write("Cases of triage", cases);
  await page.getByRole("button", { name: "Run the cases" }).click();
  await page.getByText("1 of 2 passed").waitFor();
  await page.getByRole("button", { name: "Show in the graph: a question is answered" }).click();
  await page.getByRole("heading", { name: "Tests", exact: true }).evaluate((shown) => shown.closest("section")!.scrollIntoView());

  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await write(
    "Definition of triage",
    triage.replace("nodes.classify.output.kind == 'bug'", "nodes.clasify.output.kind == 'bug'"),
  );
  const problem = page.getByRole("list", { name: "Problems" }).getByRole("button");
  await problem.first().click();
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: save("console-workflow-editor") });
  await gallery.take(page, { name: "workflow-editor", about: "the editor of a workflow's definition", page: "workflows" });
}
