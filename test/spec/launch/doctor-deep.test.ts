import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { png } from "../../harness/media-samples.ts";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

interface Finding {
  readonly about: string;
  readonly isWrong: boolean;
  readonly isWarning?: boolean;
  readonly message: string;
  readonly items?: readonly string[];
}

describe("portico doctor --deep", () => {
  const folder = temporaryFolder();
  const whole = join(folder.path, "whole");
  const dataDir = join(folder.path, ".portico");
  let attachment: string;
  let media: string;
  let service: PorticoProcess;
  afterAll(() => folder.remove());

  beforeAll(async () => {
    mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
    service = await startPortico({ cwd: folder.path });
    const token = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")).agentServiceToken;
    await using client = connectAgent({ baseURL: service.url("agent"), token });
    const { fileReference } = await client.uploadAttachment(new Blob(["a report"]), { name: "r.txt", type: "text/plain" });
    const photo = await client.uploadMedia(new File([new Uint8Array(png(3, 2))], "dot.png", { type: "image/png" }));
    await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
    [attachment, media] = [fileReference.slice(1), `media/${photo.mediaId}`];
  });

  /** Findings about stored data, of a copy to which this was done. */
  const findings = async (damage: (copy: string) => void): Promise<readonly Finding[]> => {
    rmSync(dataDir, { recursive: true, force: true });
    cpSync(whole, dataDir, { recursive: true });
    chmodSync(dataDir, 0o700);
    damage(dataDir);
    const before = fingerprints(dataDir);
    const { code, stdout } = await runCommand(["doctor", "--deep", "--json"], { cwd: folder.path });
    const found = (JSON.parse(stdout) as Finding[]).filter(({ about }) =>
      ["records store", "stored rows", "references", "files", "leftovers", "workflow definitions"].includes(about),
    );
    expect(code).toBe(found.some(({ isWrong }) => isWrong) ? 1 : 0);
    expect(fingerprints(dataDir)).toEqual(before);
    return found;
  };
  const change = (copy: string, sql: string, file = "records.sqlite") => {
    const database = new DatabaseSync(join(copy, file));
    database.exec(sql);
    database.close();
  };
  const notFine = async (damage: (copy: string) => void) =>
    (await findings(damage))
      .filter(({ isWrong, isWarning }) => isWrong || isWarning)
      .map(({ about, isWrong, message, items }) => ({ about, isWrong, message, items }));

  it("finds nothing wrong in an instance that runs, or that has stopped", async () => {
    const { code, stdout } = await service.run("doctor", "--deep");
    expect([code, stdout.match(/^ok {5}(?:stored rows|references|files): .*$/gm)]).toEqual([
      0,
      [
        "ok     stored rows: every record, log entry and note can be read",
        "ok     references: records that name each other exist",
        "ok     files: compared with their records: 2",
      ],
    ]);
    await service.stop();
    cpSync(dataDir, whole, { recursive: true });
    expect(await notFine(() => {})).toEqual([]);
  });

  it("finds files that are missing, that have another size, and that have other bytes", async () => {
    expect(await notFine((copy) => rmSync(join(copy, "files", attachment)))).toEqual([
      { about: "files", isWrong: true, message: "records without a file: 1", items: [attachment] },
    ]);
    const wrong = { about: "files", isWrong: true, message: "files that differ from their records: 1" };
    expect(await notFine((copy) => writeFileSync(join(copy, "files", media), "x"))).toEqual([{ ...wrong, items: [media] }]);
    const sameSize = (copy: string) => writeFileSync(join(copy, "files", attachment), "b report");
    expect(await notFine(sameSize)).toEqual([{ ...wrong, items: [attachment] }]);
  });

  it("lists files without a record as a warning, but no uploads in progress and no files of other plugins", async () => {
    const found = await notFine((copy) => {
      for (const key of ["attachments/gone", "media/gone.png", "media/begun.png", "other/file"]) {
        mkdirSync(join(copy, "files", key, ".."), { recursive: true });
        writeFileSync(join(copy, "files", key), key);
      }
      change(copy, `INSERT INTO "pending-uploads" VALUES ('media:begun.png', 1, '{}')`);
    });
    expect(found).toEqual([
      {
        about: "files",
        isWrong: false,
        message: expect.stringMatching(/^files without a record: 2\./),
        items: ["attachments/gone", "media/gone.png"],
      },
    ]);
  });

  it.each([
    [`UPDATE "runs" SET value = '{'`, "stored rows", /^records that cannot be read: 1$/],
    [`DELETE FROM "_log_entries"`, "stored rows", /^streams of the log with entries that are missing or cannot be read: \d+$/],
    [`UPDATE "_log_entries" SET entry = 'x'`, "stored rows", /^streams of the log with entries that are missing/],
    [`DELETE FROM "_log_streams"`, "stored rows", /^streams of the log without a name: \d+$/],
    [`INSERT INTO "_engine_notes" VALUES (77, 'input', '', 0, 'done', '1')`, "stored rows", /^works of the engine.*: 1$/],
    [`DELETE FROM "runs"`, "references", /^records that miss another record: 1$/],
    [`UPDATE "attachment-usage" SET value = json_set(value, '$.bytes', 1)`, "references", /^quotas that differ.*: 1$/],
    [`DELETE FROM "attachment-usage"`, "references", /^quotas that differ.*: 1$/],
  ])("finds rows that are damaged or miss another row: %s", async (sql, about, message) => {
    expect(await notFine((copy) => change(copy, sql))).toMatchObject([
      { about, isWrong: true, message: expect.stringMatching(message), items: expect.arrayContaining([expect.any(String)]) },
    ]);
  });

  it("finds a damaged page", async () => {
    const found = await notFine((copy) => {
      const path = join(copy, "records.sqlite");
      const bytes = readFileSync(path);
      bytes.fill(0xff, 3 * 4096, 6 * 4096);
      writeFileSync(path, bytes);
    });
    expect(found.filter(({ isWrong }) => isWrong).map(({ about }) => about)).toContain("records store");
  });

  it("lists what killed processes left, and definitions that no run needs", async () => {
    const names = ["ports.json.new", "endpoints.json.77", "files/.format.0123abcd", ".restoring/data"];
    const old = `.portico-${"0".repeat(16)}-${"1".repeat(16)}`;
    writeFileSync(join(folder.path, "agents/helper", old), "{");
    utimesSync(join(folder.path, "agents/helper", old), 1, 1);
    const found = await findings((copy) => {
      mkdirSync(join(copy, ".restoring"));
      mkdirSync(join(copy, "files/.tmp/1-dead"), { recursive: true });
      writeFileSync(join(copy, "files/.tmp/1-dead/lock"), "");
      for (const name of names) writeFileSync(join(copy, name), "");
      for (const name of names) utimesSync(join(copy, name), 1, 1);
      const definition = { workflowId: "old", document: "old.yaml", text: "", usedUntil: 1 };
      change(
        copy,
        `CREATE TABLE IF NOT EXISTS "workflow-definitions" (id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL);
         INSERT INTO "workflow-definitions" VALUES ('abc', 1, '${JSON.stringify(definition)}')`,
      );
    });
    const of = (wanted: string) => found.find(({ about }) => about === wanted);
    expect(of("leftovers")).toMatchObject({
      isWrong: false,
      isWarning: true,
      items: [
        "files/.tmp/1-dead",
        "files/.format.0123abcd",
        "endpoints.json.77",
        "ports.json.new",
        ".restoring",
        `../agents/helper/${old}`,
      ].map((name) => join(dataDir, name)),
    });
    expect(of("workflow definitions")).toMatchObject({ isWrong: false, items: ["old.yaml (abc)"] });
    rmSync(join(folder.path, "agents/helper", old));
  });

  it("says that a cluster has other tools", async () => {
    const env = { PORTICO_POSTGRES_URL: "postgres://127.0.0.1:1/none" };
    const { stdout } = await runCommand(["doctor", "--deep"], { cwd: folder.path, env });
    expect(stdout).toContain("deep checks: not for clusters");
  });
});

/** Every file with its size and time. SQLite's `-wal` and `-shm` are made by readers, too. */
function fingerprints(path: string): readonly string[] {
  return (existsSync(path) ? readdirSync(path, { recursive: true, encoding: "utf8" }) : [])
    .filter((name) => !/-(?:wal|shm)$/.test(name))
    .map((name) => `${name} ${statSync(join(path, name)).size} ${statSync(join(path, name)).mtimeMs}`)
    .toSorted();
}
