import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { afterAll, expect, it } from "vitest";
import { openAdapter } from "../conformance/open-adapter.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-chaos-blobs-"));
afterAll(() => rmSync(folder, { recursive: true }));

const LIVES = process.env.PORTICO_LONG ? 50 : 2;

it(
  "has every acknowledged blob after a kill at any instant, none that is not whole, and nothing that was not finished",
  async () => {
    const dir = join(folder, "blobs");
    const acknowledged = new Map<string, string>();
    for (let life = 0; life < LIVES; life++) {
      for (const line of await liveAndDie(dir, `life${life}`)) {
        const [key, sha256] = line.split(" ");
        acknowledged.set(key!, sha256!);
      }
    }
    expect(acknowledged.size).toBeGreaterThan(LIVES);

    const { port, close } = await openAdapter(fileBlobs({ dir }));
    const left = readdirSync(join(dir, ".tmp"), { recursive: true });
    // The common lock, and the folder of this opening with its own lock.
    expect(left).toHaveLength(3);
    const keys = await Array.fromAsync(port.keys());
    for (const key of keys) {
      const bytes = await buffer((await port.open(key))!.stream);
      expect(sha256Of(bytes.subarray(0, -32))).toBe(bytes.subarray(-32).toString("hex"));
      // A replaced blob may be newer than the last acknowledgement.
      if (key.startsWith("new/") && acknowledged.has(key)) expect(sha256Of(bytes)).toBe(acknowledged.get(key));
    }
    expect([...acknowledged.keys()].filter((key) => !keys.includes(key))).toEqual([]);
    await close();
  },
  60_000 + LIVES * 2_000,
);

/** Lets a process put blobs until it is killed, some time after it began. Returns what it acknowledged. */
async function liveAndDie(dir: string, life: string): Promise<string[]> {
  const acknowledgements = join(folder, life);
  const child = fork(join(import.meta.dirname, "processes/put-blobs-until-killed.ts"), [dir, life, acknowledgements]);
  const exited = once(child, "exit");
  child.once("message", () => setTimeout(() => child.kill("SIGKILL"), 100 + Math.random() * 300));
  expect(await exited).toEqual([null, "SIGKILL"]);
  // A last line without a line end was cut by the kill. It acknowledges nothing.
  return readFileSync(acknowledgements, "utf8").split("\n").slice(0, -1);
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
