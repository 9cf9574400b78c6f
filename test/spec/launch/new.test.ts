import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { compileCache } from "../../harness/compile-cache.ts";
import { failures, type OutsideWorkspace, outsideWorkspace, runTests } from "../../harness/outside-workspace.ts";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { importsOf, packageOf, readText, repositoryFiles, root } from "../../rooms/repository.ts";
import { readPage } from "../docs/pages.ts";

const TEMPLATES = "presets/templates";
const PORTS = ["blobs", "identity", "models", "records", "tools", "workflow-nodes"];

describe("portico new", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => {
    folder = temporaryFolder();
  });
  afterEach(() => folder.remove());
  const portico = (...args: readonly string[]) => runCommand(["new", ...args], { cwd: folder.path });

  it("says what it made and what to do next", async () => {
    const { code, stdout, stderr } = await portico("plugin", "tea-house");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain('Created the plugin "tea-house":');
    expect(stdout).toContain("  tea-house/src/plugin.ts\n");
    expect(stdout).toContain("Next:\n\n  cd tea-house\n  npm install\n  npm test\n");
  });

  it("prints the same as JSON, into a folder that is there and empty", async () => {
    mkdirSync(join(folder.path, "redis"));
    const { code, stdout } = await portico("adapter", "redis", "--port", "records", "--json");
    expect(code).toBe(0);
    const made = JSON.parse(stdout) as { folder: string; files: string[]; next: string[] };
    expect(made).toMatchObject({ folder: join(folder.path, "redis"), next: ["cd redis", "npm install", "npm test"] });
    expect(made.files).toContain("src/redis-records.ts");
    expect(filesBelow(made.folder)).toEqual(made.files);
  });

  it.each([
    ["Tea"],
    ["tea_house"],
    ["tea house"],
    ["-tea"],
    ["tea-"],
    ["tea--house"],
    ["9tea"],
    ["../tea"],
    ["@tea/house"],
    ["."],
    ["tea\nhouse"],
    ["x".repeat(51)],
  ])("refuses the name %j in one line, with exit code 64, and makes nothing", async (name) => {
    const { code, stdout, stderr } = await portico("plugin", "--", name);
    expect([code, stdout]).toEqual([64, ""]);
    expect(stderr).toMatch(/^"[^\n]*" is not a valid name: use lowercase letters[^\n]*\n$/);
    expect(readdirSync(folder.path)).toEqual([]);
  });

  it.each([["agent"], ["data-dir"], ["local"]])("refuses %s, which is the platform's own", async (name) => {
    const sentence = `"${name}" is a reserved name of the platform: choose another name\n`;
    expect(await portico("preset", name)).toEqual({ code: 64, stdout: "", stderr: sentence });
  });

  it("refuses a folder that has something in it, and a file in its place, with exit code 73, and leaves them alone", async () => {
    mkdirSync(join(folder.path, "tea"));
    writeFileSync(join(folder.path, "tea/mine.txt"), "mine");
    writeFileSync(join(folder.path, "milk"), "mine");
    const occupied = { code: 73, stdout: "", stderr: "The folder tea already exists and is not empty\n" };
    expect(await portico("plugin", "tea")).toEqual(occupied);
    const inTheWay = { code: 73, stdout: "", stderr: "milk already exists and is not a readable folder\n" };
    expect(await portico("plugin", "milk")).toEqual(inTheWay);
    expect(filesBelow(folder.path)).toEqual(["milk", "tea/mine.txt"]);
  });

  it.each([
    ["recrds", 'There is no template for the port "recrds"; did you mean "records"?\n'],
    ["telephone", `There is no template for the port "telephone"; available: ${PORTS.join(", ")}\n`],
  ])("refuses an adapter for the port %s with exit code 64", async (port, stderr) => {
    expect(await portico("adapter", "mine", "--port", port)).toEqual({ code: 64, stdout: "", stderr });
  });
});

describe("what portico new makes, outside the workspace", () => {
  let outside: OutsideWorkspace;
  interface Order {
    readonly page?: string;
    readonly args: readonly string[];
    readonly name: string;
    /** What the page has its reader do next. */
    readonly next: readonly string[];
  }
  /** What the pages for authors begin with, and adapters for the other ports. */
  const orders: Order[] = [];

  beforeAll(async () => {
    outside = outsideWorkspace([
      ...["core", "adapters", "test"].map((name) => `@portico/${name}`),
      ...["portico", "valibot", "vitest", "typescript", "@types/node"],
    ]);
    for (const page of ["docs/writing-a-plugin.md", "docs/writing-an-adapter.md", "docs/writing-a-preset.md"]) {
      const begin = (await readPage(page)).blocks.find(({ mark }) => mark?.of === "test/spec/launch/new.test.ts");
      const [command = "", ...next] = begin!.text.trim().split("\n");
      const args = /^npx portico new (.*)$/.exec(command)![1]!.split(" ");
      orders.push({ page, args, name: args[1]!, next });
    }
    for (const port of PORTS.filter((each) => each !== "tools"))
      orders.push({ args: ["adapter", `cup-${port}`, "--port", port], name: `cup-${port}`, next: [] });
    for (const { args } of orders) {
      const { code, stderr } = await runCommand(["new", ...args], { cwd: outside.path });
      if (code !== 0) throw new Error(stderr);
    }
  });
  afterAll(() => outside.remove());

  it("goes on as the pages for authors say, with commands that it has", () => {
    for (const { page, name, next } of orders.filter((order) => order.page !== undefined)) {
      const { scripts } = JSON.parse(readFileSync(join(outside.path, name, "package.json"), "utf8")) as any;
      const said = next.map((line) => line.replace(/^[A-Z_]+=\w+ /, ""));
      const start = "start" in scripts ? ["npm start"] : [];
      expect([page, said]).toEqual([page, [`cd ${name}`, "npm install", "npm test", "npm run check", ...start]]);
      expect(Object.keys(scripts)).toEqual(expect.arrayContaining(["test", "check"]));
    }
  });

  it("has the given name everywhere, and the versions of the command that made it", async () => {
    const { version } = JSON.parse(await readText("presets/package.json")) as { version: string };
    for (const { name } of orders) {
      for (const file of filesBelow(join(outside.path, name))) {
        expect(file).not.toMatch(/sample/);
        expect(readFileSync(join(outside.path, name, file), "utf8"), `${name}/${file}`).not.toMatch(/sample-?_?name/i);
      }
      const { name: named, dependencies } = JSON.parse(readFileSync(join(outside.path, name, "package.json"), "utf8")) as any;
      expect([named, dependencies["@portico/core"]]).toEqual([name, `^${version}`]);
    }
  });

  it("compiles, by the rules that it brought along", async () => {
    // All at once: alone, each would compile the packages that it uses once more.
    const together = { extends: "./tea-house/tsconfig.json", include: orders.map(({ name }) => `${name}/**/*.ts`) };
    writeFileSync(join(outside.path, "tsconfig.json"), JSON.stringify(together));
    const { code, stdout } = await outside.run("typescript/bin/tsc", ["-p", "."]);
    expect([code, stdout]).toEqual([0, ""]);
  }, 120_000);

  it("passes its tests, with the conformance suites among them", async () => {
    const files = await runTests(outside);
    expect(failures(files)).toEqual([]);
    const passed = (file: string) =>
      files.find(({ name }) => name.endsWith(file))?.assertionResults.filter(({ status }) => status === "passed").length ?? 0;
    expect(files).toHaveLength(orders.length);
    expect(passed("milk-bar/test/preset.test.ts")).toBe(2);
    for (const { name } of files.filter(({ name }) => !name.includes("milk-bar")))
      expect(passed(name), name).toBeGreaterThanOrEqual(10);
  }, 300_000);

  it("starts, if it is a preset, and serves its agents' owner", async () => {
    const program = join(outside.path, "milk-bar/src/main.ts");
    await using service = await startPortico({ program, env: { MILK_BAR_GREETING: "Hi" } });
    expect(Object.keys(service.ready.listeners)).toEqual(["proxy", "workflow", "agent"]);
    const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
    const headers = { "x-agent-service-token": agentServiceToken };
    expect((await fetch(`${service.url("agent")}/api/handshake`, { headers })).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });

  it("starts, if it is a plugin, and does what its README says", async () => {
    const program = join(outside.path, "tea-house/dev/start.ts");
    await using service = await startPortico({ program, env: { TEA_HOUSE_TOKEN: "secret" } });
    expect(Object.keys(service.ready.listeners)).toEqual(["tea-house"]);
    const headers = { authorization: "Bearer secret", "content-type": "application/json" };
    const items = `${service.url("tea-house")}/items`;
    expect((await fetch(items, { method: "POST", headers, body: '{ "name": "tea" }' })).status).toBe(201);
    expect(await (await fetch(items, { headers })).json()).toMatchObject({ items: [{ name: "tea" }] });
    expect(await service.stop()).toBe(0);
  });

  it("started in a terminal, prints its address and no hints about providers", async () => {
    const child = spawn(process.execPath, ["dev/start.ts"], {
      cwd: join(outside.path, "tea-house"),
      env: { PATH: process.env["PATH"], ...compileCache, TEA_HOUSE_TOKEN: "secret", PORTICO_AUTO_PROVIDERS: "false" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    let said = "";
    for await (const text of child.stdout.setEncoding("utf8") as AsyncIterable<string>) {
      said += text;
      if (said.includes("Stop with")) child.kill("SIGTERM");
    }
    expect(said).toMatch(
      /^Portico \S+ runs the preset tea-house\.\n\n  tea-house  http:\/\/127\.0\.0\.1:\d+\n\nData directory: \S+\. Stop with Ctrl-C\.\n$/,
    );
  });
});

describe("a template", () => {
  it("is published with the command", async () => {
    const { files } = JSON.parse(await readText("presets/package.json")) as { files: string[] };
    expect(files).toContain("templates");
  });

  it("imports what its package.json names, and nothing else of it is named", async () => {
    const files = (await repositoryFiles()).filter((file) => file.startsWith(`${TEMPLATES}/`));
    const kinds = new Set(files.map((file) => file.split("/")[2]!).filter((kind) => kind !== "every"));
    expect([...kinds].toSorted()).toEqual(["plugin", "preset", ...PORTS.map((port) => `adapter-${port}`)].toSorted());
    for (const kind of kinds) {
      const { dependencies, devDependencies } = JSON.parse(await readText(`${TEMPLATES}/${kind}/package.json`)) as any;
      const imported = { source: new Set<string>(), all: new Set<string>(["typescript", "vitest", "@types/node"]) };
      for (const file of files.filter((each) => each.startsWith(`${TEMPLATES}/${kind}/`) && each.endsWith(".ts"))) {
        for (const { target } of importsOf(file, await readText(file))) {
          const name = packageOf(target);
          if (name === undefined) continue;
          imported.all.add(name);
          if (file.includes("/src/")) imported.source.add(name);
        }
      }
      expect([kind, Object.keys(dependencies).toSorted()]).toEqual([kind, [...imported.source].toSorted()]);
      expect([kind, Object.keys({ ...dependencies, ...devDependencies }).toSorted()]).toEqual([
        ...[kind, [...imported.all].toSorted()],
      ]);
    }
  });

  it("names the versions that this repository is tested with", async () => {
    const own = await Promise.all(
      ["package.json", "core/package.json", "test/package.json"].map(async (file) => JSON.parse(await readText(file)) as any),
    );
    const tested = Object.assign(
      {},
      ...own.map(({ dependencies, devDependencies }) => ({ ...dependencies, ...devDependencies })),
    );
    for (const kind of readdirSync(resolve(root, TEMPLATES)).filter((each) => each !== "every")) {
      const { dependencies, devDependencies } = JSON.parse(await readText(`${TEMPLATES}/${kind}/package.json`)) as any;
      for (const [name, range] of Object.entries({ ...dependencies, ...devDependencies })) {
        expect([kind, name, range]).toEqual([kind, name, /^@?portico/.test(name) ? "*" : tested[name]]);
      }
    }
  });

  it("compiles under the rules that packages get", async () => {
    const own = JSON.parse(await readText("tsconfig.base.json")) as { compilerOptions: object };
    const given = JSON.parse(await readText(`${TEMPLATES}/every/tsconfig.json`)) as { compilerOptions: object };
    expect(given.compilerOptions).toEqual(own.compilerOptions);
  });
});

function filesBelow(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return (readdirSync(folder, { recursive: true }) as string[])
    .filter((file) => statSync(join(folder, file)).isFile() && !file.includes("node_modules"))
    .toSorted();
}
