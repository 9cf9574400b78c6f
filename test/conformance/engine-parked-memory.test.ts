import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "portico-engine-memory-"));
afterAll(() => rmSync(folder, { recursive: true }));
const script = join(import.meta.dirname, "processes/hold-parked-work.ts");

it.each([
  ["1,000 works that are parked hold no execution", "100", "0"],
  ["1,000 works that are never parked hold theirs", "Infinity", "1000"],
])("%s", async (_what, parkAfterMs, held) => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--expose-gc",
    script,
    join(folder, `${parkAfterMs}.db`),
    parkAfterMs,
  ]);
  expect(stdout).toBe(held);
});
