import { posix } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { PUBLISHED_ROOMS, WORKSPACES, workspaceOf } from "../../release/workspaces.ts";
import { type Import, importsOf, packageOf, readText, repositoryFiles } from "./repository.ts";

/**
 * Who may import whom. A room that does not stand on the right is out of bounds. The rooms below `adapters`, and `plugins/mcp`, are annexes: they may import the kernel
 * (`core`, `adapters`, `plugins`), and the kernel never imports them.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: [],
  adapters: ["core"],
  "adapters/clouds": ["core", "adapters"],
  "adapters/cluster": ["core", "adapters"],
  "adapters/workflow-nodes": ["core", "adapters"],
  plugins: ["core"],
  "plugins/mcp": ["core", "plugins"],
  "plugins/operator": ["core"],
  client: ["core", "plugins"],
  presets: [
    "core",
    "adapters",
    "adapters/clouds",
    "adapters/cluster",
    "adapters/workflow-nodes",
    "plugins",
    "plugins/mcp",
    "plugins/operator",
    "console",
  ],
  "presets/cli": ["core", "adapters", "adapters/cluster", "plugins", "plugins/operator", "console", "presets"],
  console: ["core", "plugins", "plugins/operator", "client"],
  // The published part of the tests: suites for authors of adapters and plugins.
  playground: [
    "core",
    "adapters",
    "adapters/clouds",
    "adapters/cluster",
    "adapters/workflow-nodes",
    "plugins",
    "plugins/mcp",
    "plugins/operator",
    "client",
    "console",
    "presets",
    "presets/cli",
    "test",
  ],
  test: [
    "core",
    "adapters",
    "adapters/clouds",
    "adapters/cluster",
    "adapters/workflow-nodes",
    "plugins",
    "plugins/mcp",
    "plugins/operator",
    "client",
    "console",
    "presets",
    "presets/cli",
    "playground",
  ],
};

/** Packages that only one place may import. Other places use the functions of that place. */
const livesIn: Readonly<Record<string, RegExp>> = {
  h3: /^core\/src\//,
  srvx: /^core\/src\//,
  "content-disposition": /^core\/src\/http\//,
  ofetch: /^core\/src\/derive\/client\.ts$/,
  "@valibot/to-json-schema": /^core\/src\/derive\//,
  unstorage: /^adapters\/src\/documents\//,
  db0: /^adapters\/src\/documents\//,
  crossws: /^adapters\/src\/realtime\//,
  "engine.io": /^adapters\/src\/realtime\//,
  "socket.io": /^adapters\/src\/realtime\//,
  undici: /^adapters\/(?:src\/(?:(?:models|tools\/mcp)\/|outbound\/)|cluster\/src\/blobs\/s3\/|workflow-nodes\/src\/http\/)/,
  jsonata: /^adapters\/workflow-nodes\/src\/transform\//,
  "quickjs-emscripten-core": /^adapters\/workflow-nodes\/src\/sandbox\//,
  "@jitl/quickjs-wasmfile-release-sync": /^adapters\/workflow-nodes\/src\/sandbox\//,
  "@smithy/signature-v4": /^adapters\/clouds\/src\/models\/bedrock\//,
  "@smithy/eventstream-codec": /^adapters\/clouds\/src\/models\/bedrock\//,
  "@aws-crypto/sha256-js": /^adapters\/clouds\/src\/models\/bedrock\//,
  "@aws-sdk/credential-provider-node": /^adapters\/clouds\/src\/models\/bedrock\//,
  "google-auth-library": /^adapters\/clouds\/src\/models\/vertex\//,
  aws4fetch: /^adapters\/cluster\/src\/blobs\/s3\//,
  "@rgrove/parse-xml": /^adapters\/cluster\/src\/blobs\/s3\//,
  "@modelcontextprotocol/client": /^adapters\/src\/tools\//,
  "@modelcontextprotocol/server": /^plugins\/mcp\/src\/server\//,
  pg: /^adapters\/cluster\/src\/(?:records|log)\/postgres/,
  ioredis: /^adapters\/cluster\//,
  bullmq: /^adapters\/cluster\/src\/engine\/bullmq/,
  "prom-client": /^adapters\/src\/telemetry\//,
  pino: /^adapters\/src\/telemetry\//,
  "@opentelemetry/api": /^adapters\/src\/telemetry\//,
  "@marcbachmann/cel-js": /^plugins\/src\/workflow-service\/expressions\//,
  ajv: /^core\/src\/kit\/json-schema\//,
  re2js: /^(?:core\/src\/kit\/json-schema|plugins\/src\/workflow-service\/expressions)\//,
  yaml: /^(?:plugins\/src\/(?:workflow-service\/definition|conversations-runs\/skills)|presets)\//,
  "modern-tar": /^presets\/cli\/src\/backup\//,
  listhen: /^presets\/cli\//,
  citty: /^presets\/cli\//,
};

/** Only these rooms are under the rules of `livesIn`: stories and tests take what they need. */
const bound = PUBLISHED_ROOMS.filter((room) => room !== "test");
/** Sources of a page, whose build contains what they import, and of the build itself. */
const isBundled = (file: string) => /^console\/(?:src\/|\w+\.config\.ts$)/.test(file);

let imports: Import[];
beforeAll(async () => {
  const sources = (await repositoryFiles()).filter((file) =>
    /^(?:core|adapters|plugins|client|presets|console|playground|test)\/.*\.(?:m?ts|svelte)$/.test(file),
  );
  imports = (await Promise.all(sources.map(async (file) => importsOf(file, await readText(file))))).flat();
});

describe("the reader of imports", () => {
  it("sees every way of importing, and no comment", () => {
    const text = [
      'import "a";',
      'import b from "b";',
      'import {\n  c,\n} from "c";',
      'import type { D } from "d";',
      'export * from "e";',
      'export type { F } from "f";',
      'const g = await import("g");',
      '// import h from "h";',
      ' * import i from "i";',
      'const text = "from";',
    ].join("\n");
    expect(importsOf("x.ts", text).map(({ target, isTypeOnly }) => (isTypeOnly ? `type ${target}` : target))).toEqual([
      ...["a", "b", "c", "type d", "e", "type f", "g"],
    ]);
  });

  it("finds the imports of this repository", () => {
    expect(imports.length).toBeGreaterThan(300);
    expect(imports.some(({ file, target }) => file === "core/src/http/surface.ts" && target === "h3")).toBe(true);
  });
});

/** What third parties are given to begin with: each folder is a package of theirs, and has tests of its own (`spec/launch/new-outside.test.ts`). */
const TEMPLATES = "presets/cli/templates/";

describe.each(Object.entries(mayImport))("%s", (room, allowed) => {
  const own = () => imports.filter(({ file }) => workspaceOf(file) === room && !file.startsWith(TEMPLATES));

  it(`imports no other room than ${allowed.join(", ") || "none"}`, () => {
    const broken = own().filter(({ target }) => {
      const other = WORKSPACES.find(({ name }) => name === packageOf(target))?.folder;
      return other !== undefined && other !== room && !allowed.includes(other);
    });
    expect(broken).toEqual([]);
  });

  it.runIf(room !== "test")("never leaves its room by a relative path", () => {
    expect(own().filter(({ file, target }) => target.startsWith(".") && workspaceOf(pathOf(file, target)) !== room)).toEqual([]);
  });

  it.runIf(bound.includes(room))("takes each package only where it lives", () => {
    const broken = own().filter(({ file, target }) => {
      const where = livesIn[packageOf(target) ?? ""];
      return where !== undefined && !where.test(file) && !isBundled(file);
    });
    expect(broken).toEqual([]);
  });

  it.runIf(bound.includes(room))("imports no package that its own package.json does not name", async () => {
    const { name, dependencies, peerDependencies } = JSON.parse(await readText(`${room}/package.json`)) as {
      name: string;
      dependencies?: object;
      peerDependencies?: object;
    };
    const named = new Set([name, ...Object.keys({ ...dependencies, ...peerDependencies })]);
    const shipped = own().filter(({ file }) => !isBundled(file));
    const missing = shipped.flatMap(({ file, target }) => {
      const package_ = packageOf(target);
      return package_ === undefined || named.has(package_) ? [] : [`${file}: ${package_}`];
    });
    expect(missing).toEqual([]);
  });
});

it("undici is imported by its file: for its name, Bun gives a module of its own, whose pools cannot dispatch", () => {
  const own = imports.filter(({ file, target }) => bound.includes(workspaceOf(file) ?? "") && packageOf(target) === "undici");
  expect(own.length).toBeGreaterThan(2);
  expect(own.filter(({ target }) => target !== "undici/index.js")).toEqual([]);
});

describe("a template", () => {
  it("never leaves its folder by a relative path", () => {
    const folderOf = (path: string) => path.split("/").slice(0, 4).join("/");
    const templates = imports.filter(({ file }) => file.startsWith(TEMPLATES));
    expect(templates.length).toBeGreaterThan(20);
    const left = templates.filter(
      ({ file, target }) => target.startsWith(".") && folderOf(pathOf(file, target)) !== folderOf(file),
    );
    expect(left).toEqual([]);
  });
});

describe("an annex", () => {
  it("is an optional peer of the presets, which import it only with `ifInstalled`, except for the presets that need it", async () => {
    const annexes = ["@portico/clouds", "@portico/cluster", "@portico/console", "@portico/mcp", "@portico/workflow-nodes"];
    const { peerDependencies, peerDependenciesMeta } = JSON.parse(await readText("presets/package.json")) as {
      peerDependencies: object;
      peerDependenciesMeta: object;
    };
    expect(Object.keys(peerDependencies)).toEqual(annexes);
    expect(peerDependenciesMeta).toEqual(Object.fromEntries(annexes.map((name) => [name, { optional: true }])));
    const importing = imports.filter(
      ({ file, target }) => workspaceOf(file) === "presets" && annexes.includes(packageOf(target) ?? ""),
    );
    const files = [...new Set(importing.map(({ file }) => file))].filter((file) => !file.startsWith("presets/src/cluster/"));
    expect(files.sort()).toEqual([
      ...["presets/src/platform/console-package.ts", "presets/src/platform/mcp-package.ts"],
      "presets/src/platform/provider-adapter.ts",
      "presets/src/platform/workflow-nodes-package.ts",
    ]);
    for (const file of files)
      expect(await readText(file)).not.toMatch(/^import (?!type).*"@portico\/(?:clouds|cluster|console|mcp|workflow-nodes)/m);
    // Other presets do not need the cluster.
    const reaching = imports.filter(
      ({ file, target }) =>
        file.startsWith("presets/src/") &&
        !file.startsWith("presets/src/cluster/") &&
        target.startsWith(".") &&
        pathOf(file, target).startsWith("presets/src/cluster/"),
    );
    expect(reaching).toEqual([]);
  });
});

it("every package is a room with a row of its own", () => {
  expect(Object.keys(mayImport).sort()).toEqual(WORKSPACES.map(({ folder }) => folder).sort());
});

describe("an area", () => {
  it("never reaches into another", () => {
    const areaOf = (path: string) => /^plugins\/src\/([^/]+)\//.exec(path)?.[1];
    const broken = imports.filter(({ file, target }) => {
      const area = areaOf(file);
      if (area === undefined) return false;
      if (target.startsWith("@portico/plugins")) return true;
      return target.startsWith(".") && areaOf(pathOf(file, target)) !== area;
    });
    expect(broken).toEqual([]);
  });

  it("is reached by presets through its door, not through its inside", () => {
    expect(imports.filter(({ file, target }) => file.startsWith("presets/") && /@portico\/\w+\/src\//.test(target))).toEqual([]);
  });
});

/** Who may import whom inside `presets/src`. A preset is a folder with a `preset.ts`; `testing` is one, too. */
const mayImportInPresets = {
  settings: [],
  platform: ["settings"],
  preset: ["platform", "settings"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

describe("inside presets", () => {
  const roomOf = (path: string) => {
    const folder = /^presets\/src\/([^/]+)\//.exec(path)?.[1];
    return folder === undefined || folder in mayImportInPresets ? (folder as keyof typeof mayImportInPresets) : "preset";
  };
  const inside = () =>
    imports.filter(({ file, target }) => file.startsWith("presets/src/") && target.startsWith(".") && roomOf(file) !== undefined);

  it.each(Object.entries(mayImportInPresets))("%s imports no other room than %s", (room, allowed) => {
    const own = inside().filter(({ file }) => roomOf(file) === room);
    expect(own).not.toEqual([]);
    const broken = own.filter(({ file, target }) => {
      const other = roomOf(pathOf(file, target));
      return other !== room && !(allowed as readonly string[]).includes(other);
    });
    expect(broken).toEqual([]);
  });

  it("no preset imports another, and none reads files or the environment: they are lists of areas and stores", () => {
    const presets = imports.filter(({ file }) => /^presets\/src\/[^/]+\/preset\.ts$/.test(file));
    expect(new Set(presets.map(({ file }) => file)).size).toBeGreaterThan(4);
    const folderOf = (path: string) => /^presets\/src\/([^/]+)\//.exec(path)?.[1];
    const files = inside().filter(({ file }) => roomOf(file) === "preset");
    const foreign = files.filter(({ file, target }) => {
      const other = pathOf(file, target);
      return roomOf(other) === "preset" && folderOf(other) !== folderOf(file);
    });
    expect(foreign).toEqual([]);
    const broken = presets.filter(({ target }) => target.startsWith("node:"));
    expect(broken).toEqual([]);
  });

  it("the command line checks workflows without an app", async () => {
    const checks = new Set(
      imports
        .map(({ file }) => file)
        .filter((file) => file.startsWith("presets/cli/src/workflows/") || file.endsWith("/doctor/check-workflows.ts")),
    );
    expect(checks.size).toBeGreaterThan(10);
    const opening: string[] = [];
    for (const file of checks) if (/\bcreateApp\b/.test(await readText(file))) opening.push(file);
    // The grant is signed by what the instance signs with. Cases of definitions run in an app in memory, which `platform` opens.
    expect(opening).toEqual(["presets/cli/src/workflows/issue-grant.ts"]);
  });
});

describe("what runs in a browser", () => {
  it("imports nothing of Node: the client, the contracts of areas, and all that they import", async () => {
    const { exports } = JSON.parse(await readText("core/package.json")) as { exports: Readonly<Record<string, string>> };
    const seen = new Set<string>();
    const visit = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const { target, isTypeOnly } of imports.filter((each) => each.file === file)) {
        if (isTypeOnly) continue;
        expect(target.startsWith("node:"), `${file} imports ${target}`).toBe(false);
        const door = packageOf(target) === "@portico/core" ? exports[target.replace("@portico/core", ".")] : undefined;
        if (door !== undefined) visit(posix.join("core", door));
        else if (target.startsWith(".")) visit(pathOf(file, target));
      }
    };
    visit("core/src/derive/client.ts");
    const contracts = new Set(
      imports.map(({ file }) => file).filter((file) => /^plugins\/src\/[\w-]+\/contract\.ts$/.test(file)),
    );
    expect(contracts.size).toBeGreaterThan(3);
    for (const contract of contracts) visit(contract);
    expect(seen.size).toBeGreaterThan(20);
  });
});

function pathOf(file: string, target: string): string {
  return posix.join(posix.dirname(file), target);
}

it("what is published does without `using`, which Node.js 22 cannot read, and which bundles replace by a package that is not a dependency", async () => {
  const published = (await repositoryFiles()).filter((file) =>
    /^(?:(?:core|adapters|plugins|client|presets)(?:\/[\w-]+)?\/src|console\/server)\/.*\.ts$/.test(file),
  );
  const found: string[] = [];
  for (const file of published) if (/^\s*(?:await )?using \w+ =/m.test(await readText(file))) found.push(file);
  expect(published.length).toBeGreaterThan(500);
  expect(found).toEqual([]);
});

it("no published package imports a module of the adapters that their package does not export: it exports `port/technology`", async () => {
  const published = (await repositoryFiles()).filter(
    (file) =>
      /^(?:adapters\/[\w-]+|plugins(?:\/[\w-]+)?|client|presets(?:\/[\w-]+)?)\/(?:src|templates)\/.*\.ts$/.test(file) &&
      !file.startsWith("adapters/src/"),
  );
  const imports = (await Promise.all(published.map(async (file) => importsOf(file, await readText(file))))).flat();
  const ofAdapters = imports.filter(({ target }) => target.startsWith("@portico/adapters/"));
  expect(ofAdapters.length).toBeGreaterThan(30);
  expect(ofAdapters.filter(({ target }) => target.split("/").length > 4)).toEqual([]);
});
