import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Adapter, ports } from "@portico/core";
import { afterAll, expect, it } from "vitest";
import { openAdapter } from "../conformance/open-adapter.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 2;

/** Tests a log and its records after kills. `place` is the argument of `processes/append-until-killed.ts`: a path or a connection URL. */
export function survivesKills(
  place: string,
  adapter: Adapter<typeof ports.log>,
  others: readonly [Adapter<typeof ports.records>],
): void {
  // Unique for this call: test files in one process share this module.
  const folder = mkdtempSync(join(tmpdir(), "portico-chaos-log-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it(
    "has every acknowledged entry after a kill at any instant, without a gap, and each with its record",
    async () => {
      const acknowledged = new Map<string, number>();
      for (let life = 0; life < LIVES; life++) {
        for (const line of await liveAndDie(place, join(folder, `life${life}`))) {
          const [stream, at] = line.split(" ");
          acknowledged.set(stream!, Number(at));
        }
      }
      expect(acknowledged.size).toBeGreaterThan(LIVES);

      const log = await openAdapter(adapter, others);
      const records = await openAdapter(others[0]);
      const marks = records.port.collection({ name: "marks" });
      for (const [stream, newest] of acknowledged) {
        const found: number[] = [];
        for await (const each of log.port.read(stream)) found.push(each.damaged ? -1 : Number(each.entry["at"]));
        expect(found.length).toBeGreaterThanOrEqual(newest);
        expect(found).toEqual(found.map((_, index) => index + 1));
        for (const at of found.slice(-4)) expect((await marks.get(`${stream}-${at}`)) !== undefined).toBe(at % 2 === 0);
        // Either both exist, or neither does.
        expect(await marks.get(`${stream}-${found.length + 1}`)).toBeUndefined();
        expect(await marks.get(`${stream}-${found.length + 2}`)).toBeUndefined();
      }
      await records.close();
      await log.close();
    },
    60_000 + LIVES * 2000,
  );
}

/** Lets a process write until it is killed, some time after its first acknowledgement. Returns what it acknowledged. */
async function liveAndDie(place: string, acknowledgements: string): Promise<string[]> {
  const child = fork(join(import.meta.dirname, "processes/append-until-killed.ts"), [
    place,
    basename(acknowledgements),
    acknowledgements,
  ]);
  const exited = once(child, "exit");
  const isWriting = () => child.exitCode !== null || (existsSync(acknowledgements) && statSync(acknowledgements).size > 0);
  while (!isWriting()) await sleep(10);
  setTimeout(() => child.kill("SIGKILL"), Math.random() * 300);
  expect(await exited).toEqual([null, "SIGKILL"]);
  // A last line without a line end was cut by the kill. It acknowledges nothing.
  return readFileSync(acknowledgements, "utf8").split("\n").slice(0, -1);
}
