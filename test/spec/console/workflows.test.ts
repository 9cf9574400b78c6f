import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Locator } from "../../browser/chromium.ts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";
import { root } from "../../rooms/repository.ts";

/** For both services, so that the console does not ask for a token. */
const TOKEN = "one-token-for-both-services-0123456789abcdef";
const example = (name: string) => readFileSync(resolve(root, "playground/workflows", name), "utf8");

const review = `
name: Review
description: Doubles numbers, and asks whether that is good.
parameters:
  type: object
  required: [title, numbers]
  properties:
    title: { type: string, title: Title, minLength: 3 }
    numbers: { type: array, items: { type: integer }, maxItems: 100 }
    urgent: { type: boolean, default: true }
    copies: { type: integer, minimum: 1 }
nodes:
  each:
    type: map
    name: Each number
    with:
      items: parameters.numbers
      nodes:
        double: { type: transform, with: { value: "\${{ item * 2 }}" } }
      result: \${{ nodes.double.output }}
  ask:
    type: human_gate
    name: Is it good?
    needs: [each]
    with:
      title: Publish it?
      message: \${{ parameters.title }}
      form:
        type: object
        required: [severity]
        properties: { severity: { type: integer, title: Severity, minimum: 1, maximum: 5 } }
  publish: { type: transform, name: Publish, needs: [ask], with: { value: "\${{ parameters }}" } }
  drop: { type: transform, name: Drop, needs: [ask.reject], with: { value: dropped } }
outputs: { doubled: "\${{ nodes.each.output }}" }
`;

/** Fails when its gate is rejected. */
const vault = `
parameters: { type: object, properties: { word: { type: string } } }
nodes:
  ask: { type: human_gate, name: Go on?, with: { title: "Say \${{ parameters.word }}?" } }
`;

/** Runs of it end at once. */
const zest = `
nodes:
  stop: { type: fail, if: "has(parameters.reason)", with: { message: "\${{ parameters.reason }}" } }
  go: { type: transform, with: { value: 1 } }
`;

describe.skipIf(findChromium() === undefined)("workflows in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: {
        "agents/support/agent.json": { name: "Support" },
        "workflows/review.yaml": review,
        "workflows/vault.yaml": vault,
        "workflows/zest.yaml": zest,
        "workflows/broken.yaml": "nodes:\n  a: { type: transfrom }\n  b: 1\n  c: 1\n  d: 1\n",
        "workflows/triage.yaml": example("triage.yaml"),
        "workflows/summarize.yaml": example("summarize.yaml"),
      },
      config: {
        workflow: { token: TOKEN, definitionsDir: "workflows", secrets: { TRACKER: "tracker-secret" } },
        agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] },
      },
    });
    await opened.signIn(TOKEN);
    await opened.goTo("Workflows");
  });
  afterAll(() => opened[Symbol.asyncDispose]());
  afterEach(() => opened.page.unrouteAll());

  /** A call of the workflow service, beside the page. */
  async function call(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<any> {
    const answer = await fetch(opened.service.url("workflow") + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-workflow-service-token": TOKEN, "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
  async function started(parameters: object): Promise<string> {
    const { runId } = await call("/api/workflow/webhook?id=review", parameters);
    await expect.poll(async () => (await call(`/api/workflow/review/runs/${runId}`)).status).toBe("waiting_human");
    return runId;
  }
  async function approve(runId: string): Promise<void> {
    const issued = await fetch(`${opened.service.url("agent")}/api/execution-grants`, {
      method: "POST",
      headers: { "x-agent-service-token": TOKEN, "content-type": "application/json" },
      body: JSON.stringify({ workflowId: "review" }),
    });
    const { executionGrantId } = (await issued.json()) as { executionGrantId: string };
    const decision = { decision: "approve", values: { severity: 2 } };
    await call(`/api/workflow/review/runs/${runId}/gate`, decision, { "x-execution-grant": executionGrantId });
  }

  const open = (...path: string[]) =>
    opened.page.evaluate((hash) => void (location.hash = hash), `#/workflows/${path.join("/")}`);
  const node = (id: string) => opened.page.locator(`.svelte-flow__node[data-id="${id}"]`);
  const label = (text: string) => opened.page.locator(".svelte-flow__edge-label", { hasText: new RegExp(`^${text}$`) });
  const panel = (title: string) => opened.page.getByRole("region", { name: title, exact: true });
  const row = (name: string) => panel("Timeline").getByRole("treeitem", { name });
  const status = () => opened.page.getByRole("status", { name: "Status of the run" });
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  async function boxOf(of: Locator) {
    const box = (await of.boundingBox())!;
    return { left: box.x, top: box.y, right: box.x + box.width, bottom: box.y + box.height };
  }

  it("lists what is deployed, and leads to it", async () => {
    const { page } = opened;
    const rows = page.getByRole("table", { name: "Workflows" }).getByRole("row");
    await rows.nth(3).waitFor();
    expect(await rows.nth(2).locator("th, td").allTextContents()).toEqual([
      ...["Summarize documents Writes a summary of each document, and one of all documents.", "never run", "", "", "2"],
      ...["summarize.yaml", "Research"],
    ]);
    const broken = panel("Unusable files").getByRole("row").nth(1);
    expect(await broken.innerText()).toMatch(/^broken\.yaml\s+2:14 .*"transfrom"[^]*and 1 more/);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("link", { name: "Triage a ticket" }).click();
    await page.getByRole("heading", { level: 1, name: "Triage a ticket" }).waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toMatch("Triage a ticket");
  });

  it("draws a definition: each node once behind what it needs, and the cases of branches and gates on their edges", async () => {
    await node("reply").waitFor();
    expect(await opened.page.locator(".svelte-flow__node").count()).toBe(5);
    expect(await opened.page.locator(".svelte-flow__edge").count()).toBe(6);
    for (const name of ["bug", "question", "reject"]) await label(name).waitFor();
    const places = await Promise.all(["classify", "route", "approve", "file", "reply"].map((id) => boxOf(node(id))));
    for (const [at, place] of places.slice(1).entries()) expect(place.left).toBeGreaterThan(places[at]!.right);
    const frame = await boxOf(opened.page.getByRole("group", { name: "Graph of the nodes" }));
    for (const { left, right, bottom } of places) {
      expect(left).toBeGreaterThanOrEqual(frame.left);
      expect(right).toBeLessThanOrEqual(frame.right);
      expect(bottom).toBeLessThanOrEqual(frame.bottom);
    }
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });

  it("shows the graph also as a list, for screen readers", async () => {
    await opened.page.getByRole("tab", { name: "List" }).click();
    const rows = opened.page.getByRole("table", { name: "Nodes" }).getByRole("row");
    expect(await rows.nth(5).locator("th, td").allTextContents()).toEqual([
      ...["Answer the ticket reply", "agent", "route.question, approve.reject, file", ""],
    ]);
    expect(await rows.nth(2).locator("td").nth(2).textContent()).toBe("one of bug, question");
  });

  it("draws what is within a map within it", async () => {
    await open("summarize");
    await node("each.read").waitFor();
    const [outer, inner] = [await boxOf(node("each")), await boxOf(node("each.read"))];
    expect(inner.left).toBeGreaterThan(outer.left);
    expect(inner.right).toBeLessThan(outer.right);
    expect(inner.top).toBeGreaterThan(outer.top);
    expect(inner.bottom).toBeLessThan(outer.bottom);
  });

  it("starts with a form made from the parameters, and shows at each field what the service says is wrong", async () => {
    const { page } = opened;
    await open("review");
    await button("Start").click();
    const dialog = page.getByRole("dialog");
    const field = (name: string) => dialog.getByLabel(name);
    await field("numbers").fill("[1, ");
    await dialog.getByRole("button", { name: "Start" }).click();
    await dialog.getByText("Invalid JSON").waitFor();
    expect(await field("urgent (optional)").locator("option:checked").textContent()).toBe("Yes");
    await field("Title").fill("no");
    await field("copies (optional)").fill("0");
    await field("numbers").fill('[1, "two"]');
    await dialog.getByRole("button", { name: "Start" }).click();
    const problems = dialog.locator(".problem");
    await expect
      .poll(() => problems.allTextContents())
      .toEqual(["Title must have at least 3 characters", "1: must be a whole number", "copies must be at least 1"]);
    expect(await field("Title").getAttribute("aria-invalid")).toBe("true");
    expect(await findingsInEveryLook(page)).toEqual([]);
    await field("Title").fill("Spring");
    await field("copies (optional)").fill("");
    await field("numbers").fill("[1, 2]");
    await dialog.getByRole("button", { name: "Start" }).click();
    await page.getByRole("heading", { level: 1, name: "Run of Review" }).waitFor();
  });

  it("lights up the graph of a run, and lists its nodes with the elements of a map below it", async () => {
    const { page } = opened;
    await status().getByText("Waiting for a person").waitFor();
    await expect.poll(() => node("each").textContent()).toContain("Completed");
    expect(await node("each.double").textContent()).toContain("2/2");
    expect(await node("ask").textContent()).toContain("Waiting");
    expect(await node("publish").textContent()).not.toContain("Completed");
    expect(await row("Each number").textContent()).toContain("Completed");
    await panel("Timeline").getByText("each[1]", { exact: true }).waitFor();
    expect(await row("double").count()).toBe(2);
    expect(await row("Publish").textContent()).toContain("Not begun");
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("shows what a node was given and what came of it, chosen in the graph with the keyboard or in the timeline", async () => {
    const { page } = opened;
    await node("each").getByRole("button").focus();
    await page.keyboard.press("Enter");
    await panel("Each number").getByText("[2 items]").first().waitFor();
    expect(await node("each").getByRole("button").getAttribute("aria-pressed")).toBe("true");
    await row("double").last().click();
    await panel("double").getByText("each[1].double").waitFor();
    expect(await panel("double").locator(".json").last().innerText()).toBe("4");
    // The same node in the graph, and the other element from there.
    expect(await node("each.double").getByRole("button").getAttribute("aria-pressed")).toBe("true");
    await page.getByRole("group", { name: "Elements" }).getByRole("button", { name: "each[0]" }).click();
    await expect.poll(() => panel("double").locator(".json").last().innerText()).toBe("2");
  });

  it("a gate that refuses its values says so at its fields; approved, the run goes on to its outputs", async () => {
    await button("Approve").click();
    await panel("Publish it?").locator(".problem").getByText("Severity is needed", { exact: true }).waitFor();
    await opened.page.getByLabel("Severity").fill("3");
    await opened.page.getByLabel("Comment (optional)").fill("It is.");
    await button("Approve").click();
    await status().getByText("Completed").waitFor();
    expect(await panel("Publish it?").count()).toBe(0);
    await row("Is it good?").click();
    await panel("Is it good?").getByText("It is.").waitFor();
    expect(await panel("Outputs of the run").textContent()).toMatch(/doubled/);
    await expect.poll(() => row("Drop").textContent()).toContain("Skipped");
    expect(await node("publish").textContent()).toContain("Completed");
  });

  it("an ended run is shown from its history, and a long value whole when that is asked for", async () => {
    const title = "All of it. ".repeat(200);
    const runId = await started({ title, numbers: [] });
    await approve(runId);
    await open("review", runId);
    await status().getByText("Completed").waitFor();
    expect(await opened.page.getByText("Live", { exact: true }).count()).toBe(0);
    await row("Publish").click();
    const outputs = panel("Publish").locator(".json").last();
    expect((await outputs.textContent())!.length).toBeLessThan(1_500);
    await outputs.getByRole("button", { name: "Show all 2,200 characters" }).click();
    expect(await outputs.textContent()).toContain(title);
  });

  it("follows events alone where the history cannot be read", async () => {
    const { page } = opened;
    const runId = await started({ title: "Events", numbers: [1] });
    await open("review", runId);
    await page.getByText("Live", { exact: true }).waitFor();
    await button("Approve").waitFor();
    await page.route(`**/runs/${runId}`, (route) => route.abort());
    await approve(runId);
    await expect.poll(() => node("publish").textContent()).toContain("Completed");
    await status().getByText("Completed").waitFor();
    await page.unrouteAll();
    // What no event tells comes with the history.
    await expect.poll(() => row("Drop").textContent(), { timeout: 30_000 }).toContain("Skipped");
  });

  it("takes the events up again after a cut", async () => {
    const { page } = opened;
    const runId = await started({ title: "A cut", numbers: [1] });
    let cuts = 0;
    await page.route("**/api/workflow/events?*", (route) => (cuts++ === 0 ? route.abort() : route.continue()));
    await open("review", runId);
    await page.getByText("The workflow service does not answer. Trying again…").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    expect(cuts).toBe(2);
    await approve(runId);
    await status().getByText("Completed").waitFor();
  });

  it("leaves the stream to another reader, continues from the history, and takes it back on request", async () => {
    const { page } = opened;
    const runId = await started({ title: "Two readers", numbers: [1] });
    await open("review", runId);
    await page.getByText("Live", { exact: true }).waitFor();
    const reading = new AbortController();
    const other = () =>
      fetch(`${opened.service.url("workflow")}/api/workflow/events?runId=${runId}`, {
        headers: { "x-workflow-service-token": TOKEN },
        signal: reading.signal,
      });
    await other();
    await page.getByText("another reader follows its live events now").waitFor();
    await button("Follow here").click();
    await page.getByText("Live", { exact: true }).waitFor();
    await other();
    await button("Follow here").waitFor();
    await approve(runId);
    await status().getByText("Completed").waitFor();
    expect(await button("Follow here").count()).toBe(0);
    reading.abort();
  });

  it("a run that is started with a grant goes the other way when it is rejected", async () => {
    const { page } = opened;
    await open("review");
    await button("Start").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Title").fill("Nothing");
    await dialog.getByLabel("numbers").fill("[]");
    await dialog.getByLabel("Start by").selectOption("Execution grant");
    await dialog.getByRole("button", { name: "Start" }).click();
    await button("Reject").click();
    await expect.poll(() => row("Drop").textContent()).toContain("Completed");
    await status().getByText("Completed").waitFor();
    await row("Is it good?").click();
    await panel("Is it good?").getByText("reject", { exact: true }).waitFor();
  });

  it("cancels a run when that is confirmed, and lists it with what became of it", async () => {
    const { page } = opened;
    const runId = await started({ title: "In vain", numbers: [1] });
    await open("review", runId);
    await button("Cancel the run").click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Cancel the run" }).click();
    await status().getByText("Cancelled").waitFor();
    await page.getByRole("link", { name: "Review", exact: true }).click();
    const listed = page.getByRole("table", { name: "Runs" }).getByRole("row").filter({ hasText: runId });
    await listed.getByText("Cancelled").first().waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("finds runs by status, time and words of the error, and shows older ones page by page", async () => {
    const { page } = opened;
    const trigger = async (parameters: object = {}): Promise<string> =>
      (await call("/api/workflow/webhook?id=zest", parameters)).runId;
    const oldest = await trigger({ reason: "The lemon is sour" });
    for (let at = 0; at < 60; at++) await trigger();
    await expect
      .poll(async () => (await call("/api/workflow/runs/search?workflowId=zest&status=completed&limit=200")).runs.length)
      .toBe(60);
    await open("zest");
    const rows = page.getByRole("table", { name: "Runs" }).getByRole("row");
    await expect.poll(() => rows.count()).toBe(51);
    const link = (name: string) => page.getByRole("link", { name, exact: true });
    await link("Older").click();
    await expect.poll(() => rows.count()).toBe(12);
    await rows.filter({ hasText: oldest }).getByText("The lemon is sour").waitFor();
    // A page stays as it is while runs begin, and the newest page has them.
    const newest = await trigger();
    expect(await rows.count()).toBe(12);
    expect(await link("Older").count()).toBe(0);
    await link("Newest").click();
    await rows.filter({ hasText: newest }).waitFor();
    expect(await rows.count()).toBe(51);

    await page.getByLabel("Status").selectOption("Failed");
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByLabel("Started", { exact: true }).selectOption("The last hour");
    await page.getByLabel("Words of the error").fill("SOUR lemon");
    await page.getByLabel("Words of the error").press("Enter");
    await expect.poll(() => page.evaluate(() => location.hash)).toBe("#/workflows/zest?status=failed&since=1h&q=SOUR+lemon");
    await rows.filter({ hasText: oldest }).waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByLabel("Words of the error").fill("orange");
    await page.getByLabel("Words of the error").press("Enter");
    await page.getByText("No matching run").waitFor();
    await page.getByRole("link", { name: "Clear filters" }).click();
    await expect.poll(() => rows.count()).toBe(51);
  });

  it("resumes a run that failed, and runs a workflow again with the same parameters", async () => {
    const { page } = opened;
    const { runId } = await call("/api/workflow/webhook?id=vault", { word: "sesame" });
    await open("vault", runId);
    await button("Reject").click();
    await status().getByText("Failed").waitFor();
    await panel("Parameters").getByText("sesame").waitFor();
    await button("Resume the run").click();
    const dialog = page.getByRole("alertdialog");
    await dialog.getByText("Repeated").waitFor();
    await dialog.getByRole("switch", { name: "Use the present definition" }).click();
    await dialog.getByText("Repeated").waitFor();
    expect(await dialog.getByText("Changed").count()).toBe(0);
    await dialog.getByRole("button", { name: "Resume the run" }).click();
    await page.getByRole("link", { name: runId }).waitFor();
    await button("Approve").click();
    await status().getByText("Completed").waitFor();
    expect(await button("Resume the run").count()).toBe(0);
    await button("Run again").click();
    await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
    await button("Approve").waitFor();
    await page.getByText("Say sesame?").first().waitFor();
    const { runs } = await call("/api/workflow/vault/runs");
    expect(runs.map(({ status: each }: { status: string }) => each)).toEqual(["waiting_human", "completed", "failed"]);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("says what is not there", async () => {
    await open("nothing-here");
    await opened.page.getByText("Workflow not found").first().waitFor();
    await open("review", "wrun_nothing");
    await opened.page.getByText("Run not found").waitFor();
  });
});
