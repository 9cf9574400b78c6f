import { createHash, hash, randomUUID } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { packTar, unpackTar, type TarHeader } from "modern-tar";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FilledPlatform } from "../../fixtures/fill-platform.ts";
import { fillPlatform, untilParked } from "../../fixtures/fill-platform.ts";
import { jsonCaller } from "../../fixtures/platform-caller.ts";
import { DATA_FOLDER, fixtureEnvironment, writePlatformFolder } from "../../fixtures/platform-folder.ts";
import { withToolsById, readAnswers } from "../../fixtures/read-answers.ts";
import { readDataDirectory, type StoredNames, type StoredThings } from "../../fixtures/read-stores.ts";
import { namesIn } from "../../fixtures/stored-names.ts";
import { type PorticoProcess, runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());
const env = fixtureEnvironment;
const inFolder = { cwd: folder.path, env };
const dataDir = join(folder.path, DATA_FOLDER);
const archive = join(folder.path, "backup.tar");
const portico = (...args: string[]) => runCommand(args, inFolder);
const digestsIn = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/^(?:lock|lock-journal|\.format)$|-(?:wal|shm|mark)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file.slice(path.length + 1), hash("sha256", readFileSync(file))]),
  );

interface Packed {
  readonly header: TarHeader;
  readonly data?: Uint8Array<ArrayBuffer>;
}
const unpack = async (path = archive): Promise<Packed[]> => unpackTar(readFileSync(path));
const textOf = (entries: readonly Packed[], name: string): string =>
  Buffer.from(entries.find(({ header }) => header.name === name)!.data!).toString();

describe("a backup of a running instance, restored beside it", () => {
  const restoredDir = join(folder.path, "restored");
  let service: PorticoProcess;
  let filled: FilledPlatform;
  let answers: Record<string, unknown>;
  beforeAll(async () => {
    writePlatformFolder(folder.path);
    service = await startPortico(inFolder);
    filled = await fillPlatform(service, dataDir);
    await untilParked(dataDir);
    answers = await readAnswers(service, dataDir, filled);
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it("is one file that only its owner can read, with a manifest of its version, formats and digests", async () => {
    const { code, stdout } = await portico("backup", archive, "--json");
    expect(code).toBe(0);
    const told = JSON.parse(stdout) as { entries: number };
    expect(told).toMatchObject({ file: archive, bytes: statSync(archive).size, warnings: [] });
    expect(statSync(archive).mode & 0o777).toBe(0o600);
    const entries = await unpack();
    const [facts, ...listed] = textOf(entries, "manifest.jsonl")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(facts).toMatchObject({
      format: 1,
      entries: told.entries,
      formats: { directory: 1, records: 1, journal: 2, files: 1 },
    });
    const found = entries.slice(1, -1).map(({ header, data = new Uint8Array() }) => ({
      ...{ name: header.name, size: data.length },
      sha256: createHash("sha256").update(data).digest("hex"),
    }));
    expect(found.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(
      listed.map(({ name, size, sha256 }) => ({ name, size, sha256 })),
    );
    expect(listed.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "data/credentials.json",
        "data/ports.json",
        "data/records.sqlite",
        "documents/workflows/greet.yaml",
      ]),
    );
  });

  it("does not replace a file, unless it is told to", async () => {
    const before = readFileSync(archive);
    expect(await portico("backup", archive)).toMatchObject({
      code: 73,
      stderr: `${archive} exists: choose another name, or use --force\n`,
    });
    expect(readFileSync(archive)).toEqual(before);
    expect((await portico("backup", archive, "--force", "--gzip")).code).toBe(0);
    expect(readFileSync(archive).subarray(0, 2)).toEqual(Buffer.from([0x1f, 0x8b]));
    expect(readdirSync(join(folder.path, ".portico-backup"))).toEqual(["lock"]);
  });

  it("has every record, entry, work, blob and secret, and the restored instance answers what the other answered", async () => {
    expect(await portico("restore", archive, "--data-dir", restoredDir)).toMatchObject({ code: 0, stderr: "" });
    await service.stop();
    expect(namesIn(restoredDir)).toEqual(namesIn(dataDir));
    const all = withoutLosses(namesIn(dataDir));
    // Counts of requests were still written after the backup.
    const names = { ...all, collections: all.collections.filter((name) => name !== "ended-work") };
    const copy = join(folder.path, "copy");
    cpSync(restoredDir, copy, { recursive: true });
    expect(await readDataDirectory(copy, names)).toEqual(await readDataDirectory(dataDir, names));

    service = await startPortico({ ...inFolder, args: ["--data-dir", restoredDir] });
    expect(withToolsById(await readAnswers(service, restoredDir, filled))).toEqual(withToolsById(answers));
    const { stdout } = await portico("doctor", "--deep", "--json", "--data-dir", restoredDir);
    const wrong = (JSON.parse(stdout) as { about: string; isWrong: boolean }[]).filter(({ isWrong }) => isWrong);
    expect(wrong.map(({ about }) => about)).toEqual([]);
  });

  it("is refused for a directory with data, and for one on which a service runs", async () => {
    const digests = digestsIn(restoredDir);
    expect(await portico("restore", archive, "--data-dir", restoredDir)).toMatchObject({
      code: 75,
      stderr: expect.stringMatching(/is in use by the running process/),
    });
    await service.stop();
    expect(await portico("restore", archive, "--data-dir", restoredDir)).toMatchObject({
      code: 73,
      stderr: expect.stringMatching(/is not empty: move it away/),
    });
    const { "endpoints.json": _, ...rest } = digests;
    expect(Object.keys(digestsIn(restoredDir))).toEqual(Object.keys(rest));
  });
});

describe("an archive", () => {
  const target = join(folder.path, "target");
  const odd = join(folder.path, "odd.tar");
  let entries: Packed[];
  beforeAll(async () => {
    expect((await portico("backup", archive, "--force")).code).toBe(0);
    entries = await unpack();
  });
  const restoreOdd = async (packed: readonly Packed[]) => {
    writeFileSync(odd, await packTar(packed));
    const result = await portico("restore", odd, "--data-dir", target);
    expect(readdirSync(target)).toEqual(["lock"]);
    return result;
  };
  const file = (name: string, text = "odd"): Packed => ({
    header: { name, size: Buffer.byteLength(text), type: "file" },
    data: new Uint8Array(Buffer.from(text)),
  });
  const within = (...more: Packed[]) => [...entries.slice(0, -1), ...more, ...entries.slice(-1)];
  const changed = (name: string, change: (text: string) => string) =>
    entries.map((entry) => (entry.header.name === name ? file(name, change(textOf(entries, name))) : entry));

  it.each([
    "../outside",
    "data/../../outside",
    "/tmp/outside",
    "data/files/../../outside",
    "data/files/.tmp/x",
    "data/lock",
    "data/other.json",
    "documents/agents/../../outside/agent.json",
    "documents/agents/helper/other.txt",
    "documents/workflows/.hidden.yaml",
    "documents\\workflows\\x.yaml",
  ])("with an entry that no backup has is refused, and nothing is written: %s", async (name) => {
    expect(await restoreOdd(within(file(name)))).toMatchObject({
      code: 66,
      stderr: expect.stringMatching(/^The archive .* is refused: no backup contains an entry such as .*\n$/),
    });
    expect(existsSync(join(folder.path, "outside"))).toBe(false);
  });

  it.each(["symlink", "link", "directory", "fifo"] as const)("with a %s is refused", async (type) => {
    const linkname = type.endsWith("link") ? "/etc/passwd" : "";
    const header = { name: `data/files/media/x${type === "directory" ? "/" : ""}`, size: 0, type, linkname };
    expect(await restoreOdd(within({ header }))).toMatchObject({ code: 66, stderr: expect.stringContaining("is refused") });
  });

  it("that is not a backup, lacks its end, or has an entry twice is refused", async () => {
    for (const packed of [[file("hello.txt")], entries.slice(0, -1), entries.slice(1), within(entries[1]!), within(entries[0]!)])
      expect(await restoreOdd(packed)).toMatchObject({ code: 66, stderr: expect.stringContaining("is refused") });
    writeFileSync(odd, "no archive");
    expect((await portico("restore", odd, "--data-dir", target)).code).toBe(66);
    expect((await portico("restore", join(folder.path, "missing.tar"), "--data-dir", target)).code).toBe(66);
  });

  it("that was cut anywhere, or has a changed byte anywhere, is refused", async () => {
    const whole = Buffer.from(await packTar(entries));
    for (const part of [0.01, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99]) {
      writeFileSync(odd, whole.subarray(0, Math.floor(whole.length * part)));
      expect((await portico("restore", odd, "--data-dir", target)).code).toBe(66);
    }
    for (const name of ["data/records.sqlite", "data/credentials.json", "documents/agents/helper/agent.json"]) {
      const { data } = entries.find(({ header }) => header.name === name)!;
      const at = whole.indexOf(data!) + Math.floor(data!.length / 2);
      const flipped = Buffer.from(whole);
      flipped[at]! ^= 1;
      writeFileSync(odd, flipped);
      expect(await portico("restore", odd, "--data-dir", target)).toMatchObject({
        code: 66,
        stderr: expect.stringContaining(`${name} was changed`),
      });
    }
    expect(readdirSync(target)).toEqual(["lock"]);
  });

  it("of a newer format, or with a store of a newer version, is refused with the version that wrote it", async () => {
    const newer = (text: string) => text.replace('"format":1', '"format":2').replace('"version":"0.0.0"', '"version":"9.1.0"');
    const newerStore = (text: string) =>
      text.replace('"journal":2', '"journal":9').replace('"version":"0.0.0"', '"version":"9.1.0"');
    for (const packed of [changed("portico-backup.json", newer), changed("manifest.jsonl", newerStore)]) {
      expect(await restoreOdd(packed)).toMatchObject({
        code: 78,
        stderr: expect.stringMatching(/Restore it with version 9\.1\.0, which wrote it\n$/),
      });
    }
  });

  it("restores documents where they are missing, and refuses to replace other texts", async () => {
    const [agent, workflow] = [join(folder.path, "agents/helper/agent.json"), join(folder.path, "workflows/greet.yaml")];
    const [text, other] = [readFileSync(agent, "utf8"), `${readFileSync(workflow, "utf8")}# changed\n`];
    rmSync(join(folder.path, "agents"), { recursive: true });
    writeFileSync(workflow, other);
    expect(await portico("restore", archive, "--data-dir", target)).toMatchObject({
      code: 73,
      stderr: expect.stringMatching(/workflows differ from those of the archive \(greet\.yaml\).*--keep-documents\n$/),
    });
    expect(readdirSync(target)).toEqual(["lock"]);
    expect(existsSync(agent)).toBe(false);
    expect((await portico("restore", archive, "--data-dir", target, "--keep-documents")).code).toBe(0);
    expect([existsSync(agent), readFileSync(workflow, "utf8")]).toEqual([false, other]);
    rmSync(target, { recursive: true });
    rmSync(workflow);
    expect((await portico("restore", archive, "--data-dir", target)).code).toBe(0);
    expect(readFileSync(agent, "utf8")).toBe(text);
    expect(`${readFileSync(workflow, "utf8")}# changed\n`).toBe(other);
    expect(readdirSync(target)).not.toContain(".restored");
  });
});

it("skills of agents are in a backup and are restored; other files of an agent's folder, and files that are no text, are not", async () => {
  const place = temporaryFolder();
  try {
    const agent = join(place.path, "agents/helper");
    for (const [path, text] of Object.entries({
      "agent.json": JSON.stringify({ name: "Helper", skills: ["skills/read-bills/"] }),
      "skills/read-bills/SKILL.md": "Read them.",
      "skills/read-bills/references/a.md": "More.",
      "skills/unlisted/SKILL.md": "Not these.",
      "work/own/notes.md": "Own notes.",
    })) {
      mkdirSync(dirname(join(agent, path)), { recursive: true });
      writeFileSync(join(agent, path), text);
    }
    writeFileSync(join(agent, "skills/read-bills/logo.png"), new Uint8Array([0xff, 0xfe, 0xfd]));
    symlinkSync(join(agent, "work"), join(agent, "skills/read-bills/linked"));
    await (await startPortico({ cwd: place.path })).stop();
    const run = (...args: string[]) => runCommand(args, { cwd: place.path });
    const backup = await run("backup", "it.tar", "--json");
    expect(JSON.parse(backup.stdout).warnings).toEqual([
      "The file helper/skills/read-bills/logo.png of a skill is not in the archive: it is not text of at most 1 MiB",
    ]);
    rmSync(agent, { recursive: true });
    expect((await run("restore", "it.tar", "--data-dir", "other")).code).toBe(0);
    const restored = readdirSync(agent, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(restored.map((entry) => join(entry.parentPath, entry.name).slice(agent.length + 1)).sort()).toEqual([
      "agent.json",
      "skills/read-bills/SKILL.md",
      "skills/read-bills/references/a.md",
    ]);
  } finally {
    place.remove();
  }
});

describe("files in a backup", () => {
  const place = temporaryFolder();
  const data = join(place.path, ".portico");
  afterAll(() => place.remove());
  const blob = (key: string) => {
    mkdirSync(join(data, "files", key, ".."), { recursive: true });
    writeFileSync(join(data, "files", key), key);
  };
  const run = (...args: string[]) => runCommand(args, { cwd: place.path });
  const filesOf = async (path: string) =>
    textOf(await unpack(path), "manifest.jsonl").match(/(?<="name":"data\/files\/)[^".][^"]*/g);

  it("are those with records, those from before records, and those of other plugins, but no unfinished uploads", async () => {
    await (await startPortico({ cwd: place.path })).stop();
    const database = new DatabaseSync(join(data, "records.sqlite"));
    database.exec(
      `CREATE TABLE IF NOT EXISTS "media" (id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL)`,
    );
    database.exec(`INSERT INTO "media" VALUES ('known.png', 1, '{}')`);
    database.exec(`INSERT INTO "pending-uploads" VALUES ('media:begun.png', 1, '{}')`);
    database.close();
    for (const key of ["media/known.png", "media/older.png", "media/begun.png", "other-plugin/a/b"]) blob(key);
    const path = join(place.path, "files.tar");
    expect(await run("backup", path)).toMatchObject({ code: 0, stderr: "" });
    expect(await filesOf(path)).toEqual(["media/known.png", "media/older.png", "other-plugin/a/b"]);
    expect((await run("restore", path, "--data-dir", "new")).code).toBe(0);
    expect(readdirSync(join(place.path, "new/files/media"))).toEqual(["known.png", "older.png"]);
    const modified = (dir: string) => Math.floor(statSync(join(place.path, dir, "files/media/older.png")).mtimeMs);
    expect(modified("new")).toBe(modified(".portico"));
  });

  it("that are uploaded or removed while the backup runs are in it with their records, or absent with them", async () => {
    // Acts between the copy of the files and the copy of the records, and after that.
    const before = `
      import { mkdirSync, rmSync, writeFileSync } from "node:fs";
      import sqlite from "node:sqlite";
      const files = ${JSON.stringify(join(data, "files/media/"))};
      const change = (sql) => {
        const database = new sqlite.DatabaseSync(${JSON.stringify(join(data, "records.sqlite"))}, { timeout: 5000 });
        database.exec(sql);
        database.close();
      };
      const prepare = sqlite.DatabaseSync.prototype.prepare;
      let copies = 0;
      sqlite.DatabaseSync.prototype.prepare = function (sql) {
        const statement = prepare.call(this, sql);
        if (!sql.startsWith("VACUUM") || copies++ > 0) return statement;
        const run = statement.run.bind(statement);
        statement.run = (path) => {
          for (const name of ["late.png", "fleeting.png"]) {
            writeFileSync(files + name, name);
            change(\`INSERT INTO "media" VALUES ('\${name}', 1, '{}')\`);
          }
          change(\`DELETE FROM "media" WHERE id = 'removed.png'\`);
          rmSync(files + "removed.png");
          const result = run(path);
          change(\`DELETE FROM "media" WHERE id = 'fleeting.png'\`);
          rmSync(files + "fleeting.png");
          return result;
        };
        return statement;
      };`;
    blob("media/removed.png");
    const opened = new DatabaseSync(join(data, "records.sqlite"));
    opened.exec(`INSERT INTO "media" VALUES ('removed.png', 1, '{}')`);
    opened.close();
    const path = join(place.path, "changing.tar");
    expect(await runPortico(["backup", path], { cwd: place.path, before })).toMatchObject({ code: 0, stderr: "" });
    expect(await filesOf(path)).toEqual(["media/known.png", "media/late.png", "media/older.png", "other-plugin/a/b"]);
    expect((await run("restore", path, "--data-dir", "changed")).code).toBe(0);
    const database = new DatabaseSync(join(place.path, "changed/records.sqlite"));
    const rows = database.prepare(`SELECT id FROM "media" ORDER BY id`).all();
    database.close();
    expect(rows.map(({ id }) => id)).toEqual(["known.png", "late.png"]);
  });

  it("that are stored and removed all the time have no record without a file in it: the last copy of the records lets writes wait", async () => {
    // Before each copy of the records a file is stored, which is removed right after the copy, if the store can be written.
    const before = `
      import { rmSync, writeFileSync } from "node:fs";
      import sqlite from "node:sqlite";
      const files = ${JSON.stringify(join(data, "files/media/"))};
      const change = (sql) => {
        const database = new sqlite.DatabaseSync(${JSON.stringify(join(data, "records.sqlite"))}, { timeout: 100 });
        try {
          database.exec(sql);
          return true;
        } catch (error) {
          if (error.errcode !== 5) throw error;
          console.error("busy");
          return false;
        } finally {
          database.close();
        }
      };
      const prepare = sqlite.DatabaseSync.prototype.prepare;
      let copies = 0;
      sqlite.DatabaseSync.prototype.prepare = function (sql) {
        const statement = prepare.call(this, sql);
        if (!sql.startsWith("VACUUM")) return statement;
        const run = statement.run.bind(statement);
        statement.run = (path) => {
          const name = "fleeting-" + copies++ + ".png";
          const isStored = change(\`INSERT INTO "media" VALUES ('\${name}', 1, '{}')\`);
          if (isStored) writeFileSync(files + name, name);
          const result = run(path);
          if (isStored && change(\`DELETE FROM "media" WHERE id = '\${name}'\`)) rmSync(files + name);
          return result;
        };
        return statement;
      };`;
    const path = join(place.path, "restless.tar");
    const { code, stderr } = await runPortico(["backup", path], { cwd: place.path, before });
    expect([code, stderr]).toEqual([0, "busy\n"]);
    expect(await filesOf(path)).toEqual(["media/known.png", "media/late.png", "media/older.png", "other-plugin/a/b"]);
  });

  it("that are missing in the instance are told of, and the rest is copied", async () => {
    rmSync(join(data, "files/media/known.png"));
    const { code, stdout } = await run("backup", join(place.path, "missing.tar"), "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout).warnings).toEqual([expect.stringMatching(/^Records without a file.*: 1 \(media\/known\.png\)/)]);
  });

  it("cannot be copied from a directory that does not exist, or from a cluster", async () => {
    expect((await run("backup", join(place.path, "x.tar"), "--data-dir", "nowhere")).code).toBe(66);
    const cluster = { cwd: place.path, env: { PORTICO_POSTGRES_URL: "postgres://127.0.0.1:1/none" } };
    for (const command of ["backup", "restore"]) {
      expect(await runCommand([command, "x.tar"], cluster)).toMatchObject({
        code: 78,
        stderr: expect.stringContaining("docs/cluster-operations.md"),
      });
    }
    expect(existsSync(join(place.path, "x.tar"))).toBe(false);
  });
});

it("after a restore, what was submitted after the backup is unknown, and not absent; what was there before is known", async () => {
  const place = temporaryFolder();
  try {
    mkdirSync(join(place.path, "agents/helper"), { recursive: true });
    writeFileSync(join(place.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
    const path = join(place.path, "first.tar");
    const start = () => startPortico({ cwd: place.path, args: ["agent"] });
    const ask = async (service: PorticoProcess): Promise<string> => {
      const token = JSON.parse(service.read("credentials.json")).agentServiceToken;
      await using client = connectAgent({ baseURL: service.url("agent"), token });
      const query = client.submit({ agentId: "helper", prompt: "Hello" });
      expect((await query.ended).status).toBe("completed");
      return query.clientRequestId;
    };
    const statuses = async (service: PorticoProcess, ids: readonly string[]): Promise<string[]> => {
      const { agent } = jsonCaller(service, join(place.path, ".portico"));
      const requests = ids.map((clientRequestId) => ({ clientRequestId }));
      const { results } = await agent("POST", "/api/query/client-requests/lookup", { agentId: "helper", requests });
      return results.map(({ status }: { status: string }) => status);
    };
    let [before, after] = ["", ""];
    {
      await using service = await start();
      before = await ask(service);
      expect((await service.run("backup", path)).code).toBe(0);
      after = await ask(service);
      expect(await statuses(service, [before, after, randomUUID()])).toEqual(["committed", "committed", "absent"]);
      await service.stop();
    }
    renameSync(join(place.path, ".portico"), join(place.path, "away"));
    expect((await runCommand(["restore", path], { cwd: place.path })).code).toBe(0);
    const doctor = JSON.parse((await runCommand(["doctor", "--json"], { cwd: place.path })).stdout);
    expect(doctor.find(({ about }: { about: string }) => about === "records store")).toMatchObject({
      isWrong: false,
      message: expect.stringMatching(/^it is intact, as restored from the backup of 20/),
    });
    await using service = await start();
    expect(await statuses(service, [before, after])).toEqual(["committed", "unknown"]);
    await service.stop();
  } finally {
    place.remove();
  }
});

describe.each(readdirSync(join(import.meta.dirname, "../../fixtures/stores")))("an upgrade from version %s", (name) => {
  const place = temporaryFolder();
  const data = join(place.path, DATA_FOLDER);
  const path = join(place.path, "before.tar");
  const run = (...args: string[]) => runCommand(args, { cwd: place.path, env });
  afterAll(() => place.remove());

  it("goes back by a restore: every record, entry, work, blob, secret and document is as it was, in the format that it had", async () => {
    cpSync(join(import.meta.dirname, "../../fixtures/stores", name), place.path, { recursive: true });
    const { stored }: { stored: StoredThings } = JSON.parse(readFileSync(join(place.path, "expected.json"), "utf8"));
    const before = digestsIn(data);
    const documents = [digestsIn(join(place.path, "agents")), digestsIn(join(place.path, "workflows"))];
    expect(await run("backup", path)).toMatchObject({ code: 0, stderr: "" });
    // Nothing was converted.
    expect(digestsIn(data)).toEqual(before);

    {
      await using service = await startPortico({ cwd: place.path, env });
      const caller = jsonCaller(service, data);
      await caller.agent("PUT", "/api/agents/helper/webhooks/events/new", { promptTemplate: "Another", toolIds: [] });
      await caller.workflow("POST", "/api/workflow/webhook?id=greet", { who: "Bea" });
      await using client = connectAgent({ baseURL: service.url("agent"), token: caller.tokens.owner });
      expect((await client.submit({ agentId: "helper", prompt: "After the upgrade" }).ended).status).toBe("completed");
      await client.uploadAttachment(new Blob(["more"]), { name: "more.txt", type: "text/plain" });
      expect(await service.stop()).toBe(0);
    }
    expect(digestsIn(data)).not.toEqual(before);

    for (const each of [DATA_FOLDER, "agents", "workflows"]) renameSync(join(place.path, each), join(place.path, `${each}-new`));
    expect(await run("restore", path)).toMatchObject({ code: 0, stderr: "" });
    // The next start writes which stores it has.
    const { "records.sqlite": _store, "stores.json": _stores, ...otherFiles } = before;
    expect(digestsIn(data)).toMatchObject(otherFiles);
    expect([digestsIn(join(place.path, "agents")), digestsIn(join(place.path, "workflows"))]).toEqual(documents);
    expect(formatsOf(data)).toEqual(formatsOf(join(import.meta.dirname, "../../fixtures/stores", name, DATA_FOLDER)));
    const { records, log, works, secrets } = stored;
    const names = withoutLosses({
      collections: Object.keys(records),
      streams: Object.keys(log),
      works: Object.keys(works),
      secrets: Object.keys(secrets),
    });
    const { "store-losses": _losses, ...kept } = records;
    expect(await readDataDirectory(data, names)).toEqual({ ...stored, records: kept });
  });
});

/** Opening a restored store notes that whatever came after the backup is lost. */
function withoutLosses(names: StoredNames): StoredNames {
  return { ...names, collections: names.collections.filter((name) => name !== "store-losses") };
}

/** The formats of the tables, which an opened store would convert. */
function formatsOf(path: string): readonly unknown[] {
  const copy = temporaryFolder();
  try {
    cpSync(join(path, "records.sqlite"), join(copy.path, "records.sqlite"));
    const database = new DatabaseSync(join(copy.path, "records.sqlite"));
    try {
      return [
        database.prepare("PRAGMA user_version").get(),
        database.prepare(`SELECT format FROM "_log_format"`).get(),
        database.prepare(`SELECT format FROM "_engine_owner"`).get(),
      ];
    } finally {
      database.close();
    }
  } finally {
    copy.remove();
  }
}
