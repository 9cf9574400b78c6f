import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PorticoProcess, runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { root } from "../../rooms/repository.ts";

const program = resolve(root, "playground/another-store.ts");
const ELSEWHERE =
  "The preset shop keeps its records in records/shop, and its log in log/sqlite, and its engine in engine/embedded";

describe("a preset that has stores of its own", () => {
  const folder = temporaryFolder();
  const dataDir = join(folder.path, ".portico");
  let service: PorticoProcess;
  const portico = (...args: string[]) => runCommand(args, { cwd: folder.path });
  const shop = (...args: string[]) => runPortico(args, { cwd: folder.path, program });
  beforeAll(async () => {
    service = await startPortico({ program, cwd: folder.path });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    folder.remove();
  });

  it("writes down which stores it has: their kinds and places, and no secret", () => {
    const { preset, stores } = JSON.parse(service.read("stores.json")) as { preset: string; stores: object };
    expect(preset).toBe("shop");
    expect(stores).toMatchObject({
      records: { kind: "records/shop", place: "shop.sqlite" },
      log: { kind: "log/sqlite", place: "log.sqlite" },
      engine: { kind: "engine/embedded", place: "journal.sqlite" },
      blobs: { kind: "blobs/files", place: "files" },
      secrets: { kind: "secrets/files", place: "credentials.json" },
      audit: { kind: "audit/records" },
    });
  });

  it.each([
    ["portico backup", () => portico("backup", "saved.tar")],
    ["its own backup", () => shop("backup", "saved.tar")],
    ["portico restore", () => portico("restore", "saved.tar")],
  ])("is not called saved: %s refuses with a line", async (_name, run) => {
    const { code, stdout, stderr } = await run();
    expect([code, stdout]).toEqual([78, ""]);
    expect(stderr).toContain(`${ELSEWHERE}: this command copies only the stores of a data directory`);
    expect(stderr.trim()).not.toContain("\n");
    expect(existsSync(join(folder.path, "saved.tar"))).toBe(false);
  });

  it.each([["portico"], ["its own program"]])("has its safe tokens issued, listed and revoked by the service: %s", async (by) => {
    const run = by === "portico" ? portico : shop;
    const issued = await run("token", "issue", "--provider", "demo", "--label", "mine");
    expect(issued).toMatchObject({ code: 0, stderr: "" });
    const headers = { authorization: `Bearer ${issued.stdout.trim()}` };
    const models = () => fetch(`${service.url("proxy")}/models`, { headers });
    expect((await models()).status).toBe(200);
    const tokens = JSON.parse((await run("token", "list", "--json")).stdout) as { tokenId: string; label: string }[];
    expect(tokens).toMatchObject([{ label: "mine" }]);
    expect(await run("token", "revoke", "wrong")).toMatchObject({ code: 1, stderr: "No safe token has this id\n" });
    expect(await run("token", "revoke", tokens[0]!.tokenId)).toMatchObject({ code: 0 });
    expect((await models()).status).toBe(401);
    expect(await run("token", "revoke", "--all")).toMatchObject({ code: 0, stdout: "Revoked 0 safe tokens.\n" });
  });

  it.each([
    ["audit"],
    ["usage"],
    ["user export ada out"],
    ["user erase ada --yes"],
    ["attachments list"],
    ["token rotate agent"],
    ["grant issue --workflow none"],
  ])("portico %s refuses with a line, and leaves no store behind", async (command) => {
    const { code, stdout, stderr } = await portico(...command.split(" "));
    expect([code, stdout]).toEqual([78, ""]);
    expect(stderr).toContain("The preset shop keeps its records in records/shop");
    expect(stderr.trim().split("\n").at(-1)).toContain("which portico does not know: call the program of the preset");
    expect(readdirSync(dataDir).filter((name) => name.startsWith("records"))).toEqual([]);
  });

  it("its own program refuses the same while the service runs, because stores may not be shared", async () => {
    const { code, stderr } = await shop("audit");
    expect(code).toBe(75);
    expect(stderr).toContain("stop the service first");
  });

  it("doctor and doctor --deep say that they did not check these stores", async () => {
    for (const run of [portico, shop]) {
      const { stdout } = await run("doctor", "--deep", "--json");
      const findings = JSON.parse(stdout) as { about: string; message: string; isWarning?: boolean }[];
      expect(findings).toContainEqual({
        ...{ about: "stores", isWrong: false, isWarning: true },
        message: `not checked: ${ELSEWHERE}, which doctor does not know`,
      });
      expect(findings.filter(({ about }) => about === "deep checks")).toMatchObject([{ isWarning: true }]);
      expect(findings.filter(({ about }) => about === "records store")).toEqual([]);
    }
  });

  it("its own program knows its kinds of nodes, and portico does not", async () => {
    const file = join(folder.path, "workflows/count.yaml");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "name: Count\nnodes:\n  number: { type: counter, with: { name: tickets } }\n");
    expect((await portico("workflow", "check", file)).stdout).toContain("counter");
    expect(await shop("workflow", "check", file)).toEqual({ code: 0, stdout: "", stderr: "" });
    writeFileSync(file, "name: Count\nnodes:\n  number: { type: counter, with: { name: tickets, by: x } }\n");
    expect(await shop("workflow", "check", file)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("Expected a number"),
    });
    const findings = JSON.parse((await shop("doctor", "--json")).stdout) as { about: string; message: string }[];
    expect(findings.filter(({ about }) => about.startsWith("workflow definition"))).toHaveLength(1);
    expect((await shop("workflow", "schema")).stdout).toContain('"counter"');
  });

  it("doctor does not call a tool wrong that only the preset may have", async () => {
    const file = join(folder.path, "agents/clerk/agent.json");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '{ "name": "Clerk", "tools": ["count_stock"] }');
    const findings = JSON.parse((await portico("doctor", "--json")).stdout) as { about: string; isWrong: boolean }[];
    expect(findings.filter(({ about }) => about === "agent clerk")).toMatchObject([{ isWrong: false, isWarning: true }]);
  });

  it("its own program explains its commands under its own name", async () => {
    const { code, stdout } = await shop("--help");
    expect([code, stdout]).toEqual([0, expect.stringContaining("USAGE shop")]);
    for (const command of ["start", "doctor", "backup", "workflow"]) expect(stdout).toContain(command);
    expect((await shop("doctr")).stderr).toBe('Unknown command "doctr"; did you mean "doctor"? (see shop --help)\n');
    expect((await shop("openapi", "--surface", "agent")).stdout).toContain('"openapi"');
  });

  it("when it has stopped, its own program opens its stores, and portico still refuses", async () => {
    expect(await service.stop()).toBe(0);
    const issued = await shop("token", "issue", "--provider", "demo");
    expect(issued).toMatchObject({ code: 0, stderr: "" });
    expect(await portico("token", "list")).toMatchObject({ code: 78 });
    const actions = (await shop("audit", "--json")).stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as any).action);
    expect(actions).toContain("safe-token.issue");
    expect(await shop("user", "export", "ada", "exported")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Nothing is kept"),
    });
    expect(await shop("user", "erase", "ada", "--yes")).toMatchObject({ code: 0 });
    await using again = await startPortico({ program, cwd: folder.path });
    const headers = { authorization: `Bearer ${issued.stdout.trim()}` };
    expect((await fetch(`${again.url("proxy")}/models`, { headers })).status).toBe(200);
    expect(await again.stop()).toBe(0);
  });

  it("does not start on a restored data directory, whose stores it would not use", async () => {
    const other = temporaryFolder();
    await using usual = await startPortico({ cwd: other.path });
    await usual.stop();
    const saved = join(folder.path, "usual.tar");
    expect(await runCommand(["backup", saved], { cwd: other.path })).toMatchObject({ code: 0 });
    expect(await portico("restore", saved, "--data-dir", "restored", "--keep-documents")).toMatchObject({ code: 0 });
    const { code, stderr } = await shop("--data-dir", "restored");
    expect([code, stderr]).toEqual([
      78,
      expect.stringContaining("was restored from a backup, but the preset shop keeps its records"),
    ]);
    other.remove();
  });
});

it("a preset of portico writes down that its stores are in its data directory, also if it moved", async () => {
  const folder = temporaryFolder();
  await using service = await startPortico({ cwd: folder.path });
  expect(JSON.parse(readFileSync(join(service.dataDir, "stores.json"), "utf8"))).toMatchObject({
    preset: "local",
    stores: { records: { kind: "records/sqlite", place: "records.sqlite" }, engine: { kind: "engine/embedded" } },
  });
  expect(await runCommand(["backup", "saved.tar"], { cwd: folder.path })).toMatchObject({ code: 0 });
  await service.stop();
  folder.remove();
});
