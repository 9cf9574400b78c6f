import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCommand, temporaryFolder } from "../../harness/portico-process.ts";
import { filesBelow, TEMPLATE_PORTS as PORTS } from "../../harness/template-files.ts";
import { importsOf, packageOf, readText, repositoryFiles, root } from "../../rooms/repository.ts";

const TEMPLATES = "presets/cli/templates";
/** Folders of templates that are not packages of their own. */
const PARTS = ["every", "instance"];

describe("every package of portico new", () => {
  it("checks the version of Node.js before it starts and before its tests", async () => {
    const manifests = (await repositoryFiles()).filter((file) => /^presets\/cli\/templates\/[\w-]+\/package\.json$/.test(file));
    expect(manifests).not.toEqual([]);
    for (const file of manifests) {
      const { scripts } = JSON.parse(await readText(file)) as { scripts: Readonly<Record<string, string>> };
      const first = [scripts["pretest"], scripts["start"]].filter((script) => script !== undefined);
      expect([file, first.filter((script) => !script.startsWith("node -r @portico/core/needed-node "))]).toEqual([file, []]);
      expect([file, scripts["pretest"]]).toEqual([file, expect.any(String)]);
    }
  });
});

describe("portico new", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => {
    folder = temporaryFolder();
  });
  afterEach(() => folder.remove());
  const portico = (...args: readonly string[]) => runCommand(["new", ...args], { cwd: folder.path });

  /** Nothing is installed in the folders of these tests. */
  const INSTALL = `npm install ${join(root, "dist/packages")}/*.tgz`;

  it("says what it made and what to do next, without a registry that does not have the packages", async () => {
    const { code, stdout, stderr } = await portico("plugin", "tea-house");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain('Created the plugin "tea-house":');
    expect(stdout).toContain("  tea-house/src/plugin.ts\n");
    expect(stdout).toContain(`Next:\n\n  cd tea-house\n  ${INSTALL}\n  npm test\n`);
  });

  it("prints the same as JSON, into a folder that is there and empty", async () => {
    mkdirSync(join(folder.path, "redis"));
    const { code, stdout } = await portico("adapter", "redis", "--port", "records", "--json");
    expect(code).toBe(0);
    const made = JSON.parse(stdout) as { folder: string; files: string[]; next: string[] };
    expect(made).toMatchObject({ folder: join(folder.path, "redis"), next: ["cd redis", INSTALL, "npm test"] });
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

describe("portico new adapter --own-protocol", () => {
  it("makes a model provider, and is refused for other ports", async () => {
    const folder = temporaryFolder();
    try {
      const portico = (...args: readonly string[]) => runCommand(["new", "adapter", ...args], { cwd: folder.path });
      const { code, stdout } = await portico("tin-can", "--own-protocol", "--json");
      expect([code, (JSON.parse(stdout) as { files: string[] }).files]).toEqual([
        0,
        expect.arrayContaining(["src/tin-can-models.ts"]),
      ]);
      const stderr = "--own-protocol is for the port models\n";
      expect(await portico("other", "--port", "tools", "--own-protocol")).toEqual({ code: 64, stdout: "", stderr });
    } finally {
      folder.remove();
    }
  });
});

describe("a template", () => {
  it("is published with the command", async () => {
    const { files } = JSON.parse(await readText("presets/cli/package.json")) as { files: string[] };
    expect(files).toContain("templates");
  });

  it("imports what its package.json names, and nothing else of it is named", async () => {
    const files = (await repositoryFiles()).filter((file) => file.startsWith(`${TEMPLATES}/`));
    const kinds = new Set(files.map((file) => file.split("/")[3]!).filter((kind) => !PARTS.includes(kind)));
    expect([...kinds].toSorted()).toEqual(
      ["own-protocol-models", "plugin", "preset", ...PORTS.map((port) => `adapter-${port}`)].toSorted(),
    );
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
    for (const kind of readdirSync(resolve(root, TEMPLATES)).filter((each) => !PARTS.includes(each))) {
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
