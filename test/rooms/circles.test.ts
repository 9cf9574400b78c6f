import { posix } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { WORKSPACES, workspaceOf } from "../../release/workspaces.ts";
import { findCircles } from "./find-circles.ts";
import { importsOf, readText, repositoryFiles } from "./repository.ts";

const rooms = new Set(["release", ...WORKSPACES.map(({ folder }) => folder.split("/")[0]!)]);

interface Package {
  readonly room: string;
  readonly name: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly imports?: Readonly<Record<string, string>>;
}

/** Every source file with the files of this repository that it imports, also those that it imports for their types alone. */
let graph: Map<string, readonly string[]>;

beforeAll(async () => {
  const files = await repositoryFiles();
  const sources = files.filter((file) => rooms.has(file.split("/")[0]!) && /\.(?:m?[jt]s|svelte)$/.test(file));
  const packages = await Promise.all(
    WORKSPACES.map(async ({ folder }): Promise<Package> => ({
      room: folder,
      ...JSON.parse(await readText(`${folder}/package.json`)),
    })),
  );
  const isSource = new Set(sources);
  graph = new Map(
    await Promise.all(
      sources.map(async (file) => {
        const targets = importsOf(file, await readText(file)).map(({ target }) => fileOf(packages, file, target));
        return [file, targets.filter((target) => target !== undefined && isSource.has(target))] as [string, string[]];
      }),
    ),
  );
});

describe("the finder of circles", () => {
  it("finds circles of any length, and what hangs on them is not in them", () => {
    const circles = findCircles(
      new Map([
        ["before", ["a"]],
        ["a", ["b", "behind"]],
        ["b", ["c"]],
        ["c", ["a"]],
        ["behind", []],
        ["d", ["e", "c"]],
        ["e", ["d"]],
        ["alone", ["alone"]],
      ]),
    );
    expect(circles).toEqual([
      ["a", "b", "c"],
      ["d", "e"],
    ]);
  });

  it("follows relative paths, names of packages, and names within a package", () => {
    expect(graph.get("core/src/index.ts")).toContain("core/src/ports/index.ts");
    expect(graph.get("plugins/src/workflow-service/plugin.ts")).toContain("core/src/index.ts");
    expect(graph.get("presets/src/platform/workflow-service.ts")).toContain("plugins/src/workflow-service/plugin.ts");
    expect(graph.get("presets/cli/src/token-store.ts")).toContain("plugins/src/model-proxy/management-contract.ts");
    expect(graph.get("presets/cli/src/workflows/follow-run.ts")).toContain("plugins/src/workflow-service/contract.ts");
    expect([...graph.values()].flat().length).toBeGreaterThan(4000);
  });
});

describe("the files of this repository", () => {
  it("import each other in no circle, not for types either", () => {
    expect(findCircles(graph)).toEqual([]);
  });
});

describe("the folders of conversations and runs", () => {
  it("import each other in no circle", () => {
    const folders = new Map<string, string[]>();
    for (const [file, targets] of graph) {
      const folder = folderOf(file);
      if (folder === undefined) continue;
      const others = targets.map(folderOf).filter((other) => other !== undefined && other !== folder) as string[];
      folders.set(folder, [...(folders.get(folder) ?? []), ...others]);
    }
    expect(folders.get("queries")).toContain("turns");
    expect(findCircles(folders)).toEqual([]);
  });
});

/** The folder of a file of conversations and runs. Undefined for other files, and for those beside the folders. */
function folderOf(file: string): string | undefined {
  return /^plugins\/src\/conversations-runs\/([^/]+)\//.exec(file)?.[1];
}

/** The file of an import. Undefined for an import from outside of this repository. */
function fileOf(packages: readonly Package[], file: string, target: string): string | undefined {
  if (target.startsWith(".")) return posix.join(posix.dirname(file), target);
  for (const { room, name, exports = {}, imports = {} } of packages) {
    const isOwn = target.startsWith("#") && workspaceOf(file) === room;
    if (!isOwn && target !== name && !target.startsWith(`${name}/`)) continue;
    const path = isOwn ? imports[target] : pathOf(exports, `.${target.slice(name.length)}`);
    return path === undefined ? undefined : posix.join(room, path);
  }
  return undefined;
}

/** What a package exports under this name: the entry itself, or a pattern with `*`. */
function pathOf(exports: Readonly<Record<string, string>>, name: string): string | undefined {
  const patterns = Object.keys(exports).filter((key) => {
    const [before, after] = key.split("*");
    return after !== undefined && name.startsWith(before!) && name.endsWith(after);
  });
  // Of several, Node.js takes the longest.
  const pattern = patterns.sort((one, other) => other.length - one.length)[0];
  if (name in exports || pattern === undefined) return exports[name];
  const [before = "", after = ""] = pattern.split("*");
  return exports[pattern]!.replace("*", name.slice(before.length, name.length - after.length));
}
