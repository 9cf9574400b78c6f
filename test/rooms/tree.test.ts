import { readdir } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { RULES } from "../mutation/rules.ts";
import { readText, repositoryFiles, root } from "./repository.ts";

const topLevel = [
  ...["adapters", "client", "console", "core", "deploy", "docs", "playground", "plugins", "presets", "release", "test"],
  ...["CONTRIBUTING.md", "LICENSE", "SECURITY.md", "README.md", "package-lock.json", "package.json", "tsconfig.base.json"],
];
/** What every folder of `plugins/src` has: a reader begins with its page, then its calls, then how it is assembled. */
const furniture = ["README.md", "contract.ts", "plugin.ts"];
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
  it("has a page, a contract and a plugin", async () => {
    const areas = (await readdir(resolve(root, "plugins/src"), { withFileTypes: true })).filter((entry) => entry.isDirectory());
    expect(areas.length).toBeGreaterThan(4);
    const missing = areas
      .flatMap(({ name }) => furniture.map((piece) => `plugins/src/${name}/${piece}`))
      .filter((piece) => !files.includes(piece));
    expect(missing).toEqual([]);
  });
});

describe("every page of the operator", () => {
  it("has a contract and a service", async () => {
    const pages = (await readdir(resolve(root, "plugins/operator/src"), { withFileTypes: true })).filter((entry) =>
      entry.isDirectory(),
    );
    expect(pages.length).toBeGreaterThan(8);
    const missing = pages
      .flatMap(({ name }) => ["contract.ts", "service.ts"].map((piece) => `plugins/operator/src/${name}/${piece}`))
      .filter((piece) => !files.includes(piece));
    expect(missing).toEqual([]);
  });
});

/** Sources over 400 lines say why in their first comment, in a sentence that begins with "One file". */
describe("a source of more than 400 lines", () => {
  it("gives the reason in its head", async () => {
    const sources = files.filter((file) => /^(?:core|adapters|plugins|client|presets|console)\/.*\.(?:ts|svelte)$/.test(file));
    const long: string[] = [];
    for (const file of sources) {
      const lines = (await readText(file)).split("\n");
      if (lines.length > 401 && !lines.slice(0, 60).some((line) => /^(?:\/\/| \*|\/\*\*).*\bOne file\b/.test(line)))
        long.push(file);
    }
    expect(long).toEqual([]);
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
    // The package of one port has no folder for it.
    const adapter = /^adapters\/(?:(?:cl(?:ouds|uster)\/)?src\/([\w-]+)|(workflow-nodes)\/src)\/([\w-]+)\.ts$/;
    const adapters = files.filter((file) => adapter.test(file));
    const misnamed: string[] = [];
    for (const file of adapters) {
      const [, port, packageOfPort, technology] = adapter.exec(file)!;
      const folder = port ?? packageOfPort;
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
