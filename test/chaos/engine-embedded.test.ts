import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "portico-chaos-engine-"));
afterAll(() => rmSync(folder, { recursive: true }));

const LIVES = process.env.PORTICO_LONG ? 50 : 2;
const script = join(import.meta.dirname, "processes/work-until-killed.ts");
const [path, happened] = [join(folder, "store.db"), join(folder, "happened")];

it(
  "loses no accepted work to kills at any instant, does nothing twice that may not be, and closes what it may not go on with",
  async () => {
    for (let life = 0; life < LIVES; life++) await liveAndDie(`${life}`);
    const accepted = happenings("accepted").map(([id]) => id!);
    expect(accepted.length).toBeGreaterThan(LIVES);
    // In pieces, because the length of a command line is limited.
    for (let from = 0; from < accepted.length; from += 2000) {
      await promisify(execFile)(process.execPath, [script, path, "last", happened, accepted.slice(from, from + 2000).join()]);
    }

    const ended = new Map(happenings("ended").map(([id, state]) => [id!, state!]));
    expect(accepted.filter((id) => !["completed", "interrupted"].includes(ended.get(id)!))).toEqual([]);
    expect([...ended].filter(([id, state]) => state === "interrupted" && !id.startsWith("closed-"))).toEqual([]);

    const closed = new Set(happenings("closed").map(([id]) => id!));
    expect(accepted.filter((id) => (ended.get(id) === "interrupted") !== closed.has(id))).toEqual([]);

    const begins = count(happenings("began").map(([id]) => id!));
    expect([...begins].filter(([id, times]) => id.startsWith("closed-") && times > 1)).toEqual([]);
    // Step b may be repeated until it has ended. The other steps may never be repeated.
    const runs = count(happenings("ran").map(([id, step]) => `${id} ${step}`));
    expect([...runs].filter(([step, times]) => !step.endsWith(" b") && times > 1)).toEqual([]);
    const passed = new Set<string>();
    const late: string[] = [];
    for (const [what, id, step] of happenings()) {
      if (what === "passed") passed.add(`${id} ${step}`);
      else if (what === "ran" && passed.has(`${id} ${step}`)) late.push(`${id} ${step}`);
    }
    expect(late).toEqual([]);
  },
  40_000 + LIVES * 20_000,
);

/** Lets a process work until it is killed, some time after it began. */
async function liveAndDie(life: string): Promise<void> {
  const child = fork(script, [path, life, happened]);
  const exited = once(child, "exit");
  child.once("message", () => setTimeout(() => child.kill("SIGKILL"), 100 + Math.random() * 300));
  expect(await exited).toEqual([null, "SIGKILL"]);
}

/** What happened, in order: the words of lines of one kind, without the first word. */
function happenings(sort?: string): readonly (readonly string[])[] {
  const all = readFileSync(happened, "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  return sort === undefined ? all : all.filter(([what]) => what === sort).map(([, ...words]) => words);
}

function count(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
