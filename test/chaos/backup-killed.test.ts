import { hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runPortico, startPortico, temporaryFolder } from "../harness/portico-process.ts";

/**
 * A command can be killed at each call that changes files. A run tries one of STEP such calls, beginning with a random one, and the last
 * calls.
 */
const STEP = process.env.PORTICO_LONG ? 4 : 41;
const LAST = process.env.PORTICO_LONG ? 40 : 7;
/** A long run tries the calls in random order, and ends after this time for each command. */
const LONG_MS = 4.5 * 60_000;
const FIRST = Math.floor(Math.random() * STEP);
const folder = temporaryFolder();
const archive = join(folder.path, "whole.tar");
const target = join(folder.path, "target");
const inFolder = { cwd: folder.path };
afterAll(() => folder.remove());

/** Kills the process at its call with this number, or writes the number of its calls. */
const killAt = (call: number) => `
  import fs from "node:fs";
  import { syncBuiltinESMExports } from "node:module";
  let calls = 0;
  const names = ["renameSync", "rmSync", "mkdirSync", "writeFileSync", "openSync", "fsyncSync", "linkSync", "unlinkSync", "writeSync"];
  for (const [of, name] of [...names.map((name) => [fs, name]), [fs.promises, "open"]]) {
    const original = of[name];
    of[name] = (...given) => {
      if (++calls === ${call}) process.kill(process.pid, "SIGKILL");
      return original(...given);
    };
  }
  syncBuiltinESMExports();
  process.on("exit", () => console.error("calls " + calls));`;

const digests = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.startsWith("lock"))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file.slice(path.length + 1), hash("sha256", readFileSync(file))]),
  );

/** The calls at which a command is killed. */
async function places(...args: string[]): Promise<readonly number[]> {
  const { code, stderr } = await runPortico(args, { ...inFolder, before: killAt(0) });
  expect(code).toBe(0);
  const count = Number(/calls (\d+)/.exec(stderr)?.[1]);
  expect(count).toBeGreaterThan(20);
  const found = Array.from({ length: count }, (_, at) => at + 1).filter((call) => call % STEP === FIRST || call > count - LAST);
  return process.env.PORTICO_LONG ? found.toSorted(() => Math.random() - 0.5) : found;
}

/** The calls that fit into the time. */
function* inTime(found: readonly number[]): Generator<number, void> {
  const endsAt = Date.now() + LONG_MS;
  let tried = 0;
  for (const call of found) {
    if (Date.now() > endsAt) break;
    yield call;
    tried++;
  }
  if (process.env.PORTICO_LONG) console.warn(`${tried} of ${found.length} places`);
}

beforeAll(async () => {
  mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
  writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
  await (await startPortico(inFolder)).stop();
  for (const name of ["attachments/a", "media/b.png"]) {
    mkdirSync(join(folder.path, ".portico/files", name, ".."), { recursive: true });
    writeFileSync(join(folder.path, ".portico/files", name), name);
  }
  expect((await runPortico(["backup", archive], inFolder)).code).toBe(0);
});

it("a restore that is killed at any call leaves nothing or everything: repeated, or finished by a start, it is whole", async () => {
  const agents = join(folder.path, "agents");
  const clear = () => {
    for (const path of [target, agents]) rmSync(path, { recursive: true, force: true });
  };
  clear();
  const calls = await places("restore", archive, "--data-dir", target);
  const [whole, documents] = [digests(target), digests(agents)];
  let finished = 0;
  for (const call of inTime(calls)) {
    clear();
    const killed = await runPortico(["restore", archive, "--data-dir", target], { ...inFolder, before: killAt(call) });
    expect(killed.code).toBe(null);
    const hasBegun = existsSync(join(target, ".restored"));
    const isValid = hasBegun || existsSync(join(target, "records.sqlite"));
    if (hasBegun && call % 2 === 0) {
      // A start finishes it before it opens anything, and adds files of its own.
      await using service = await startPortico({ ...inFolder, args: ["--data-dir", target], hasOwnProcess: true });
      expect(await service.stop()).toBe(0);
      const found = digests(target);
      for (const name of ["credentials.json", "files/attachments/a", "files/media/b.png", "restored.json"])
        expect(found[name], name).toBe(whole[name]);
    } else {
      const again = await runPortico(["restore", archive, "--data-dir", target], inFolder);
      // A directory with a valid mark is only finished. After that it is a directory with data.
      expect(again.code, again.stderr).toBe(isValid ? 73 : 0);
      expect(digests(target)).toEqual(whole);
    }
    expect(digests(agents)).toEqual(documents);
    expect(readdirSync(target).filter((name) => name.startsWith("."))).toEqual([]);
    finished += hasBegun ? 1 : 0;
  }
  expect(finished).toBeGreaterThan(0);
}, 1_800_000);

it("a backup that is killed at any call leaves no file, or a complete one; the next one works and removes the rest", async () => {
  const file = join(folder.path, "killed.tar");
  const calls = await places("backup", file);
  for (const call of inTime(calls)) {
    rmSync(file, { force: true });
    expect((await runPortico(["backup", file], { ...inFolder, before: killAt(call) })).code).toBe(null);
    if (existsSync(file)) {
      rmSync(target, { recursive: true, force: true });
      expect((await runPortico(["restore", file, "--data-dir", target], inFolder)).code).toBe(0);
    }
    expect((await runPortico(["backup", file, "--force"], inFolder)).code).toBe(0);
    expect(readdirSync(join(folder.path, ".portico-backup"))).toEqual(["lock"]);
  }
}, 1_800_000);
