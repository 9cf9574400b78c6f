import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const folder = temporaryFolder();
const dataDir = join(folder.path, ".portico");
const copy = join(folder.path, "copy");
const path = (name: string) => join(dataDir, name);
afterAll(() => folder.remove());

beforeAll(async () => {
  await using service = await startPortico({ cwd: folder.path });
  expect(await service.stop()).toBe(0);
  cpSync(dataDir, copy, { recursive: true });
});

const sql = (text: string) => (): void => {
  const database = new DatabaseSync(path("records.sqlite"));
  database.exec(text);
  database.close();
};

describe("a service refuses what a newer version wrote: exit 78, a line, and nothing is changed", () => {
  it.each<[string, string, () => void]>([
    ["data directory", "it has format 2", () => writeFileSync(path("format.json"), '{"format":2,"version":"9.1.0"}')],
    ["records store", "it has format 2", sql("PRAGMA user_version = 2")],
    ["log", "it has format 7", sql(`UPDATE "_log_format" SET format = 7`)],
    ["engine's journal", "it has format 9", sql(`UPDATE "_engine_owner" SET format = 9`)],
    ["folder of blobs", "it has format 2", () => writeFileSync(path("files/.format"), "2\n")],
    [
      "secrets' file",
      "it has format 2",
      () => writeFileSync(path("credentials.json"), '{"$format":"2","other":{"new":"shape"}}'),
    ],
  ])("the %s", async (store, format, makeNewer) => {
    rmSync(dataDir, { recursive: true });
    cpSync(copy, dataDir, { recursive: true });
    makeNewer();
    const files = ["format.json", "records.sqlite", "files/.format", "credentials.json"];
    const before = files.map((name) => readFileSync(path(name)).toString("base64"));
    const { code, stdout, stderr } = await runCommand(["start", "--json"], { cwd: folder.path });
    expect([code, stdout]).toEqual([78, ""]);
    const line = stderr.split("\n").filter((each) => !each.startsWith("{"));
    expect(line).toHaveLength(2);
    expect(line[0]).toContain(store);
    expect(line[0]).toContain(`was written by a newer version: ${format}, and this version reads formats up to`);
    if (store === "data directory") expect(line[0]).toContain("(9.1.0). Start the version that wrote it");
    expect(files.map((name) => readFileSync(path(name)).toString("base64"))).toEqual(before);
  });

  it("and so does a command beside it", async () => {
    rmSync(dataDir, { recursive: true });
    cpSync(copy, dataDir, { recursive: true });
    sql("PRAGMA user_version = 2")();
    const { code, stderr } = await runCommand(["token", "list"], { cwd: folder.path });
    expect([code, stderr]).toEqual([78, expect.stringContaining("The records store was written by a newer version")]);
    writeFileSync(path("format.json"), '{"format":2}');
    expect((await runCommand(["token", "list"], { cwd: folder.path })).stderr).toContain(
      `The data directory ${dataDir} was written`,
    );
  });
});

it("a start writes down the format and the version of its data directory", async () => {
  expect(JSON.parse(readFileSync(join(copy, "format.json"), "utf8"))).toEqual({ format: 1, version: expect.any(String) });
});
