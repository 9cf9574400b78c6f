import { describe, expect, it } from "vitest";
import { startPortico } from "../../harness/portico-process.ts";

/** Reports the flags of V8 when the process starts, on a signal and at the end. */
const before = `
  import { cachedDataVersionTag } from "node:v8";
  const tell = (when) => process.stderr.write("heap " + JSON.stringify([when, cachedDataVersionTag(), process.execArgv]) + "\\n");
  tell("start");
  process.on("SIGUSR2", () => tell("served"));
  process.on("exit", () => tell("end"));`;

type Told = [when: "start" | "served" | "end", flags: number, execArgv: string[]];

function toldIn(stderr: string): Told[] {
  const lines = stderr.split("\n").filter((line) => line.startsWith("heap "));
  return lines.map((line) => JSON.parse(line.slice("heap ".length)) as Told);
}

describe.skipIf(process.platform === "win32")("portico start", () => {
  it("starts its process again with a small young generation, and keeps the process id", async () => {
    await using service = await startPortico({ args: ["proxy"], before });
    const starts = toldIn(service.stderr()).map(([, , execArgv]) => execArgv.includes("--max-semi-space-size=16"));
    expect(starts).toEqual([false, true]);
    // The signal goes to the process that the test started.
    expect(await service.stop()).toBe(0);
  });

  it("uses the size of the young generation that the user gives", async () => {
    await using service = await startPortico({ args: ["proxy"], before, env: { NODE_OPTIONS: "--max-semi-space-size=32" } });
    const flags = toldIn(service.stderr()).flatMap(([, , execArgv]) => execArgv);
    expect(toldIn(service.stderr())).toHaveLength(1);
    expect(flags.join(" ")).not.toContain("semi-space");
  });

  it("changes flags of V8 only while it serves, because V8 refuses code that was stored under other flags", async () => {
    await using service = await startPortico({ args: ["proxy"], before });
    service.signal("SIGUSR2");
    await expect.poll(() => toldIn(service.stderr()).at(-1)![0]).toBe("served");
    expect(await service.stop()).toBe(0);
    const told = toldIn(service.stderr()).slice(1);
    expect(told.map(([when]) => when)).toEqual(["start", "served", "end"]);
    const [start, served, end] = told.map(([, flags]) => flags);
    expect(served).not.toBe(start);
    expect(end).toBe(start);
  });
});
