import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PUBLISHED_ROOMS } from "../../../release/workspaces.ts";
import { root } from "../../rooms/repository.ts";

const run = promisify(execFile);

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

let copy: string;
beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), "portico-changesets-"));
  for (const file of ["config.json", "changelog.mjs"]) await cp(join(root, ".changeset", file), join(copy, ".changeset", file));
  // Changesets knows by it that these are workspaces of npm.
  await cp(join(root, "package-lock.json"), join(copy, "package-lock.json"));
  for (const room of [...PUBLISHED_ROOMS, "playground"]) await mkdir(join(copy, room), { recursive: true });
  for (const folder of ["", ...PUBLISHED_ROOMS, "playground"])
    await cp(join(root, folder, "package.json"), join(copy, folder, "package.json"));
  await writeFile(join(copy, ".changeset/a-new-thing.md"), '---\n"@portico/client": minor\n---\n\nA new thing,\nwhich is new.\n');
  await run("git", ["init", "--quiet", "--initial-branch=main"], { cwd: copy });
  await run("git", ["add", "."], { cwd: copy });
  const identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@host.invalid"];
  await run("git", [...identity, "commit", "--quiet", "--message=All"], { cwd: copy });
  await run(process.execPath, [join(root, "node_modules/@changesets/cli/bin.js"), "version"], { cwd: copy });
});
afterAll(() => rm(copy, { recursive: true, force: true }));

const manifestOf = async (folder: string, room: string) =>
  JSON.parse(await readFile(join(folder, room, "package.json"), "utf8")) as Manifest;

it("every changeset names packages that are published", async () => {
  const names = await Promise.all(PUBLISHED_ROOMS.map(async (room) => (await manifestOf(root, room)).name));
  const files = (await readdir(join(root, ".changeset"))).filter((file) => file.endsWith(".md") && file !== "README.md");
  for (const file of files) {
    const [, head = ""] = (await readFile(join(root, ".changeset", file), "utf8")).split("---\n");
    const named = [...head.matchAll(/^"([^"]+)":/gm)].map(([, name]) => name!);
    expect([file, named.length > 0, named.filter((name) => !names.includes(name))]).toEqual([file, true, []]);
  }
});

it("a change of one package gives all of them the next version, and they want exactly that of each other", async () => {
  const [major, minor] = (await manifestOf(root, "client")).version.split(".").map(Number);
  const next = `${major}.${minor! + 1}.0`;
  const manifests = await Promise.all(PUBLISHED_ROOMS.map((room) => manifestOf(copy, room)));
  expect(manifests.map(({ version }) => version)).toEqual(PUBLISHED_ROOMS.map(() => next));
  const names = manifests.map(({ name }) => name);
  const wanted = manifests.flatMap(({ dependencies }) => Object.entries(dependencies).filter(([name]) => names.includes(name)));
  expect(wanted.length).toBeGreaterThan(5);
  expect(wanted.filter(([, version]) => version !== next)).toEqual([]);
});

it("CHANGELOG.md says what changed, once, and nothing of versions that are equal anyway", async () => {
  const changes = await readFile(join(copy, "client/CHANGELOG.md"), "utf8");
  expect(changes.split("- A new thing,\n  which is new.").length).toBe(2);
  expect(changes).not.toContain("Updated dependencies");
});
