import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../harness/portico-process.ts";
import { type WorkflowFolder, workflowFolder } from "../../harness/workflow-process.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 60_000 });

let folder: WorkflowFolder;
let service: Awaited<ReturnType<WorkflowFolder["start"]>>;
beforeAll(async () => {
  folder = workflowFolder();
  folder.deploy("digest.json", {
    parameters: { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] },
    schedules: [{ name: "yearly", cron: "0 0 1 1 *", timeZone: "Europe/Berlin", parameters: { topic: "all" } }],
    nodes: { n: { type: "transform", with: { value: "${{ parameters.topic }}" } } },
  });
  service = await folder.start("workflow");
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const portico = (...args: string[]) => runCommand(["workflow", "schedule", ...args], { cwd: folder.path });
const json = async (...args: string[]) => JSON.parse((await portico(...args, "--json")).stdout);

describe("portico workflow schedule", () => {
  it("list prints the schedules with their timing, state and next time, and as JSON what the service answers", async () => {
    const [head, digest] = (await portico("list")).stdout.split("\n");
    expect(head).toMatch(/^SCHEDULE +TIMING +STATE +NEXT +LAST START +LAST END$/);
    expect(digest).toMatch(/^digest\/yearly +0 0 1 1 \* Europe\/Berlin +never started +\d{4}-12-31T23:00:00\.000Z$/);
    expect(await json("list")).toEqual((await service.call("GET", "/api/workflow/schedules")).body.schedules);
  });

  it("list says how many planned times wait for the end of the run before them", async () => {
    folder.deploy("slow.json", {
      schedules: [{ name: "often", every: "1s" }],
      nodes: { ask: { type: "human_gate", with: { title: "Go on?" } } },
    });
    await expect
      .poll(async () => (await portico("list")).stdout, { timeout: 30_000 })
      .toMatch(/^slow\/often +every 1 s +no result yet, \d+ waiting /m);
    folder.deploy("slow.json", { nodes: { n: { type: "transform", with: { value: 1 } } } });
    await expect.poll(async () => (await json("list")).length).toBe(1);
  });

  it("pause and resume change the schedule", async () => {
    expect((await portico("pause", "digest/yearly")).stdout).toContain("The schedule digest/yearly is paused.");
    expect((await json("list"))[0]).toMatchObject({ name: "yearly", paused: true, next: [] });
    expect(await json("resume", "digest/yearly")).toEqual({ schedule: "digest/yearly", paused: false });
    expect((await json("list"))[0]).toMatchObject({ name: "yearly", paused: false });
  });

  it("trigger prints the id of the run that it starts", async () => {
    const runId = (await portico("trigger", "digest/yearly")).stdout.trim();
    expect((await service.call("GET", `/api/workflow/digest/runs/${runId}`)).body.schedule).toEqual({ name: "yearly" });
  });

  it("fails with a clear message: 1 for a schedule that does not exist, 64 for a name without its workflow, 69 without a service", async () => {
    const missing = await portico("pause", "digest/none");
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no such schedule") });
    expect(await portico("pause", "yearly")).toMatchObject({ code: 64, stderr: expect.stringContaining("WORKFLOW/NAME") });
    expect(await portico("list", "--url", "http://127.0.0.1:1")).toMatchObject({ code: 69 });
  });
});
