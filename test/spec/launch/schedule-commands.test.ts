import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 60_000 });

const TOKEN = "owner-token-0123456789";
const folder = temporaryFolder();
let service: PorticoProcess;
beforeAll(async () => {
  mkdirSync(join(folder.path, "agents/reporter"), { recursive: true });
  writeFileSync(
    join(folder.path, "agents/reporter/agent.json"),
    JSON.stringify({
      name: "Reporter",
      schedules: [
        { name: "yearly", cron: "0 0 1 1 *", timeZone: "Europe/Berlin", prompt: "Report" },
        { name: "broken", cron: "61 * * * *", prompt: "Never" },
      ],
    }),
  );
  const agent = { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] };
  service = await startPortico({ cwd: folder.path, config: { agent, shutdownGraceMs: 100 } });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  folder.remove();
});

const portico = (...args: string[]) => runCommand(["schedule", ...args], { cwd: folder.path });
const json = async (...args: string[]) => JSON.parse((await portico(...args, "--json")).stdout);

describe("portico schedule", () => {
  it("list prints the schedules with their timing, state and next time, and as JSON what the service answers", async () => {
    const { stdout } = await portico("list");
    const lines = stdout.split("\n");
    expect(lines[0]).toMatch(/^SCHEDULE +TIMING +STATE +NEXT +LAST START +LAST END$/);
    expect(lines[1]).toMatch(/^reporter\/yearly +0 0 1 1 \* Europe\/Berlin +never started +\d{4}-12-31T23:00:00\.000Z$/);
    expect(lines[2]).toMatch(/^reporter\/broken +.* not valid/);
    const answer = await fetch(`${service.url("agent")}/api/schedules`, { headers: { "x-agent-service-token": TOKEN } });
    expect(await json("list")).toEqual((await answer.json()).schedules);
  });

  it("list --failing prints only what fails or cannot start", async () => {
    expect((await json("list", "--failing")).map(({ name }: { name: string }) => name)).toEqual(["broken"]);
  });

  it("pause and resume change the schedule", async () => {
    expect((await portico("pause", "reporter/yearly")).stdout).toContain("The schedule reporter/yearly is paused.");
    expect((await json("list"))[0]).toMatchObject({ name: "yearly", paused: true, next: [] });
    expect(await json("resume", "reporter/yearly")).toEqual({ schedule: "reporter/yearly", paused: false });
    expect((await json("list"))[0]).toMatchObject({ name: "yearly", paused: false });
  });

  it("trigger prints the id of the run that it starts", async () => {
    const { stdout } = await portico("trigger", "reporter/yearly");
    expect(stdout.trim()).toMatch(/^run_/);
    await expect
      .poll(async () => {
        const answer = await fetch(`${service.url("agent")}/api/runs/${stdout.trim()}`, {
          headers: { "x-agent-service-token": TOKEN },
        });
        return (await answer.json()).inbound;
      })
      .toEqual({ origin: "schedule", displayName: "yearly" });
  });

  it("fails with a clear message: 1 for a schedule that does not exist, 64 for a name without its agent, 69 without a service", async () => {
    expect(await portico("pause", "reporter/none")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no such schedule"),
    });
    expect(await portico("pause", "yearly")).toMatchObject({ code: 64, stderr: expect.stringContaining("AGENT/NAME") });
    expect(await portico("list", "--url", "http://127.0.0.1:1")).toMatchObject({ code: 69 });
  });
});
