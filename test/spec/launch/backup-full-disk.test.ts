import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { smallDisk } from "../../harness/small-disk.ts";

const disk = smallDisk(4);
const folder = temporaryFolder();
afterAll(() => {
  disk?.remove();
  folder.remove();
});

describe.skipIf(!disk)("on a full disk", () => {
  const run = (...args: string[]) => runCommand(args, { cwd: folder.path });
  const archive = join(disk?.path ?? "", "backup.tar");
  const shown = (path: string) => readdirSync(path).filter((name) => !name.startsWith(".portico-backup"));

  it("a backup says so and leaves no file; with room it is complete", async () => {
    await (await startPortico({ cwd: folder.path })).stop();
    const media = join(folder.path, ".portico/files/media");
    mkdirSync(media, { recursive: true });
    writeFileSync(join(media, "large.png"), Buffer.alloc(6 * 2 ** 20, 1));
    expect(await run("backup", archive)).toEqual({
      code: 73,
      stdout: "",
      stderr: `The disk is full. ${archive} cannot be written (ENOSPC)\n`,
    });
    expect(shown(disk!.path)).toEqual([]);
    expect(readdirSync(join(disk!.path, ".portico-backup"))).toEqual(["lock"]);

    // An existing archive stays as it was.
    writeFileSync(archive, "earlier");
    expect((await run("backup", archive, "--force")).code).toBe(73);
    expect(readFileSync(archive, "utf8")).toBe("earlier");
    rmSync(join(media, "large.png"));
    expect((await run("backup", archive, "--force")).code).toBe(0);
    expect((await run("restore", archive, "--data-dir", "small")).code).toBe(0);
  });

  it("a restore says so and leaves nothing; with room it is complete", async () => {
    writeFileSync(join(folder.path, ".portico/files/media/large.png"), Buffer.alloc(6 * 2 ** 20, 1));
    const large = join(folder.path, "large.tar");
    expect((await run("backup", large)).code).toBe(0);
    const dataDir = join(disk!.path, "data");
    expect(await run("restore", large, "--data-dir", dataDir)).toEqual({
      code: 73,
      stdout: "",
      stderr: `The disk is full. The data directory ${dataDir} cannot be written (ENOSPC)\n`,
    });
    expect(readdirSync(dataDir)).toEqual(["lock"]);
    expect((await run("restore", join(disk!.path, "backup.tar"), "--data-dir", dataDir)).code).toBe(0);
    expect(readdirSync(dataDir)).toContain("records.sqlite");
  });
});
