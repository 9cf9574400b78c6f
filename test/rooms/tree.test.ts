import { readdir } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { RULES } from "../mutation/rules.ts";
import { readText, repositoryFiles, root } from "./repository.ts";

const topLevel = [
  ...["adapters", "client", "console", "core", "deploy", "docs", "playground", "plugins", "presets", "release", "test"],
  ...["CONTRIBUTING.md", "LICENSE", "README.md", "package-lock.json", "package.json", "tsconfig.base.json"],
];
const furniture = ["README.md", "contract.ts", "errors.ts", "envelope.ts", "guards.ts", "limits.ts", "config.ts", "plugin.ts"];
/** Pages that any service can have beside its areas: small, and with one folder each. */
const servicePages = [
  "agent-documents",
  "agent-schedules",
  "api-docs",
  "audit",
  "console",
  "limits",
  "listeners",
  "log",
  "measurements",
  "metrics",
  "probes",
  "sign-in",
  "usage",
];
const pageFurniture = ["README.md", "contract.ts", "config.ts", "plugin.ts"];
const namelessWords = /^(?:utils?|helpers?|types?|common|misc|shared|lib)\.[cm]?[jt]s$/;

let files: string[];
beforeAll(async () => {
  files = await repositoryFiles();
});

describe("the tree", () => {
  it("has exactly the top-level entries of the house, and dot-entries", () => {
    const entries = new Set(files.map((file) => file.split("/")[0]!).filter((entry) => !entry.startsWith(".")));
    expect([...entries].sort()).toEqual([...topLevel].sort());
  });

  it("names every file after what it holds", () => {
    expect(files.filter((file) => namelessWords.test(basename(file)))).toEqual([]);
  });

  it("spells file names in small letters, digits and single hyphens", () => {
    const sources = files.filter((file) =>
      /^(?:core|adapters|plugins|client|presets|console|playground|test)\/.*\.ts$/.test(file),
    );
    expect(
      sources.filter(
        (file) =>
          !/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.(?:test|bench|config|d|svelte|heavy\.test|property\.test))?\.ts$/.test(basename(file)),
      ),
    ).toEqual([]);
  });
});

describe("mutation testing", () => {
  it("mutates files that exist", () => {
    expect(RULES.flatMap((group) => group.files).filter((file) => !files.includes(file))).toEqual([]);
  });
});

describe("every area", () => {
  it("has the same furniture", async () => {
    const areas = (await readdir(resolve(root, "plugins/src"), { withFileTypes: true })).filter((entry) => entry.isDirectory());
    expect(areas.length).toBeGreaterThan(0);
    expect(areas.map(({ name }) => name)).toEqual(expect.arrayContaining(servicePages));
    const furnitureOf = (name: string) => (servicePages.includes(name) ? pageFurniture : furniture);
    const missing = areas
      .flatMap(({ name }) => furnitureOf(name).map((piece) => `plugins/src/${name}/${piece}`))
      .filter((piece) => !files.includes(piece));
    expect(missing).toEqual([]);
  });
});

describe("the plugin of every area", () => {
  it("only assembles: handlers are files of their own, and it has at most 100 lines", async () => {
    const plugins = files.filter((file) => /^plugins\/src\/[\w-]+\/plugin\.ts$/.test(file));
    expect(plugins.length).toBeGreaterThan(5);
    const long = await Promise.all(plugins.map(async (file) => ({ file, lines: (await readText(file)).split("\n").length })));
    expect(long.filter(({ lines }) => lines > 100)).toEqual([]);
  });
});

/** Ports that the app itself fills: no adapter can, and their law is tested on apps, in the file on the right. */
const filledByTheApp: Readonly<Record<string, string>> = {
  areas: "test/spec/grammar/areas.test.ts",
  readiness: "test/spec/grammar/readiness.test.ts",
  "node-paths": "test/spec/grammar/node-paths.test.ts",
  "websocket-paths": "test/spec/grammar/websocket-paths.test.ts",
};

describe("every port of the core", () => {
  const all = () =>
    files.flatMap((file) => /^core\/src\/ports\/([\w-]+)\.ts$/.exec(file)?.[1] ?? []).filter((port) => port !== "index");
  const ports = () => all().filter((port) => !(port in filledByTheApp));

  it("that the app itself fills is tested on apps", () => {
    const named = Object.entries(filledByTheApp);
    expect(named.filter(([port, test]) => !all().includes(port) || !files.includes(test))).toEqual([]);
  });

  it("has a conformance suite, and runs it", () => {
    expect(ports()).toContain("telemetry");
    const missing = ports()
      .flatMap((port) => [`test/conformance/${port}.ts`, `test/conformance/${port}.test.ts`])
      .filter((file) => !files.includes(file));
    expect(missing).toEqual([]);
  });

  it("has an adapter folder, every file of which that is an adapter is named after its technology", async () => {
    expect(ports().filter((port) => !files.some((file) => file.startsWith(`adapters/src/${port}/`)))).toEqual([]);
    const adapters = files.filter((file) => /^adapters\/src\/[\w-]+\/[\w-]+\.ts$/.test(file));
    const misnamed: string[] = [];
    for (const file of adapters) {
      const [, folder, technology] = /^adapters\/src\/([\w-]+)\/([\w-]+)\.ts$/.exec(file)!;
      const declared = /define(?:Adapter|WorkflowNode)\(\{\s*name: "([^"]+)"/.exec(await readText(file))?.[1];
      if (declared !== undefined && declared !== `${folder}/${technology}`) misnamed.push(`${file} is called ${declared}`);
    }
    expect(misnamed).toEqual([]);
  });

  it("stands in the list of ports", async () => {
    const door = await readText("core/src/ports/index.ts");
    expect(all().filter((port) => !door.includes(`"./${port}.ts"`))).toEqual([]);
  });
});
