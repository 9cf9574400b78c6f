import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "portico-chaos-parking-"));
afterAll(() => rmSync(folder, { recursive: true }));

const LIVES = process.env.PORTICO_LONG ? 50 : 4;
const script = join(import.meta.dirname, "processes/wait-until-killed.ts");
const [path, happened] = [join(folder, "store.db"), join(folder, "happened")];

it(
  "answers every signal once and in order, whenever its process is killed, while works are parked and come back",
  async () => {
    for (let life = 1; life <= LIVES; life++) await liveAndDie(`${life}`);
    const accepted = happenings("accepted").map(([id]) => id!);
    expect(accepted.length).toBeGreaterThan(LIVES);
    expect(happenings("parked").length).toBeGreaterThan(LIVES);
    // In pieces, because the length of a command line is limited.
    for (let from = 0; from < accepted.length; from += 2000) {
      await promisify(execFile)(process.execPath, [
        script,
        path,
        `${LIVES + 1}`,
        happened,
        accepted.slice(from, from + 2000).join(),
      ]);
    }

    expect(happenings("beside")).toEqual([]);
    const ended = new Map(happenings("ended").map(([id, state, output]) => [id!, { state, output: output! }]));
    expect(accepted.filter((id) => ended.get(id)?.state !== "completed")).toEqual([]);

    const signalled = Map.groupBy(happenings("signalled"), ([id, name]) => `${id} ${name}`);
    const wrong = accepted.filter((id) => {
      const words = JSON.parse(ended.get(id)!.output) as number[];
      return ["word-0", "word-1"].some((name, of) => {
        const got = words.filter((_, at) => at % 2 === of);
        // A signal without an acknowledgement may be stored, too. Every acknowledged signal before the last necessary one was answered.
        const kept = (signalled.get(`${id} ${name}`) ?? []).map(([, , number]) => Number(number));
        const isLost = kept.some((number) => number < got.at(-1)! && !got.includes(number));
        return isLost || got.some((number, at) => at > 0 && number <= got[at - 1]!);
      });
    });
    expect(wrong).toEqual([]);
  },
  40_000 + LIVES * 20_000,
);

/** Lets a process work until it is killed, some time after it began. */
async function liveAndDie(life: string): Promise<void> {
  const child = fork(script, [path, life, happened]);
  const exited = once(child, "exit");
  child.once("message", () => setTimeout(() => child.kill("SIGKILL"), 200 + Math.random() * 400));
  expect(await exited).toEqual([null, "SIGKILL"]);
}

/** What happened of one kind, in order: words without the first word. */
function happenings(sort: string): readonly (readonly string[])[] {
  const all = readFileSync(happened, "utf8").split("\n");
  return all.flatMap((line) => (line.startsWith(`${sort} `) ? [line.split(" ").slice(1)] : []));
}
