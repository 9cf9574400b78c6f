import { closeSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runPortico, startPortico } from "../../harness/portico-process.ts";
import { smallDisk } from "../../harness/small-disk.ts";

const disk = smallDisk(8);
const dataDir = join(disk?.path ?? "", "data");
afterAll(() => disk?.remove());

const ownToken = (): string => JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")).agentServiceToken;

/** Leave no room at all. */
function fill(): void {
  const file = openSync(join(disk!.path, "filler"), "w");
  try {
    for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 2)) {
      const chunk = Buffer.alloc(bytes);
      while (isWritten(file, chunk));
    }
  } finally {
    closeSync(file);
  }
}

function isWritten(file: number, chunk: Buffer): boolean {
  try {
    return writeSync(file, chunk) === chunk.length;
  } catch {
    return false;
  }
}

describe.skipIf(!disk)("on a full disk", () => {
  it("a service says what is full, and stops with exit code 0; the next start says it, too; with room again nothing is lost", async () => {
    const args = ["agent", "--data-dir", dataDir];
    let tokens: { safeTokens: unknown[] };
    {
      await using service = await startPortico({ args, hasOwnProcess: true });
      const token = ownToken();
      const call = (method: string) =>
        fetch(`${service.url("agent")}/api/safe-tokens`, {
          method,
          headers: { "x-agent-service-token": token, "content-type": "application/json" },
          ...(method === "POST" && { body: JSON.stringify({ providerId: "demo" }) }),
        });
      expect((await call("POST")).status).toBe(201);
      tokens = (await (await call("GET")).json()) as typeof tokens;
      fill();
      const refused = await call("POST");
      expect([refused.status, await refused.json()]).toEqual([503, { error: "storage_full", message: "The disk is full" }]);
      const ready = await fetch(`${service.url("agent")}/readyz`);
      expect([ready.status, await ready.json()]).toEqual([
        503,
        { status: "service_not_ready", reason: `The disk is full: no disk space is left at ${dataDir}` },
      ]);
      expect(await (await call("GET")).json()).toEqual(tokens);
      expect(await service.stop()).toBe(0);
      expect(service.stderr()).not.toContain("defect");
    }
    const again = await runPortico(["start", ...args]);
    expect(again.code).toBe(69);
    expect(again.stderr).toMatch(/^The disk is full\. .*\n$/m);
    rmSync(join(disk!.path, "filler"));
    await using last = await startPortico({ args, hasOwnProcess: true });
    const token = ownToken();
    const found = await fetch(`${last.url("agent")}/api/safe-tokens`, { headers: { "x-agent-service-token": token } });
    expect(await found.json()).toEqual(tokens);
    expect((await fetch(`${last.url("agent")}/readyz`)).status).toBe(200);
  });
});
