import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { buildPackages } from "../../../release/build-packages.ts";
import { CHUNKS } from "../../../release/manifest.ts";
import { entriesOf } from "../../../release/entries.ts";
import { packPackages, type Tarball } from "../../../release/pack-packages.ts";
import { startService } from "../../../release/start-service.ts";
import { PUBLISHED_ROOMS } from "../../../release/workspaces.ts";
import { importsOf, packageOf, root } from "../../rooms/repository.ts";

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly description: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** A published package, unpacked where a project has what it installed. */
interface Installed extends Tarball {
  readonly name: string;
  readonly folder: string;
  readonly manifest: Manifest;
}

let folder: string;
let packages: Installed[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "portico-packages-"));
  const built = await buildPackages(join(folder, "built"));
  const tarballs = await packPackages(
    built.map(({ folder: from }) => from),
    folder,
  );
  packages = await Promise.all(built.map(({ name }, at) => install(name, tarballs[at]!, folder)));
  await linkOthers(folder);
}, 300_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the published packages", () => {
  it("hold JavaScript with declarations and maps, README, license, and no source", async () => {
    for (const { name, folder: own, files } of packages) {
      expect(files, name).toEqual(expect.arrayContaining(["LICENSE", "README.md", "package.json"]));
      const built = files.filter((file) => file.startsWith("dist/"));
      const code = built.filter((file) => file.endsWith(".js"));
      const exported = code.filter((file) => !file.startsWith(`dist/${CHUNKS}/`));
      const mapped: string[] = [];
      for (const file of code)
        if ((await readFile(join(own, file), "utf8")).includes("sourceMappingURL")) mapped.push(`${file}.map`);
      const declared = exported.map((file) => file.replace(/\.js$/, ".d.ts"));
      expect(mapped.length, name).toBeGreaterThan(0);
      expect(
        [...mapped, ...declared].filter((file) => !files.includes(file)),
        name,
      ).toEqual([]);
      expect(
        built.filter((file) => !/\.(?:js|js\.map|d\.ts)$/.test(file)),
        name,
      ).toEqual([]);
    }
    expect(packages.find(({ name }) => name === "portico")!.files).toContain("portico.mjs");
  });

  it("say what they are, and all carry one version, which they want of each other", () => {
    const [{ manifest: first }] = packages as [Installed];
    for (const { manifest } of packages) {
      expect(manifest).toMatchObject({ version: first.version, license: "MIT", description: expect.stringMatching(/\w/) });
      expect(manifest).not.toHaveProperty("devDependencies");
      for (const { name } of packages) expect(manifest.dependencies?.[name] ?? first.version).toBe(first.version);
    }
  });

  it("import no package that they do not name", async () => {
    for (const { name, folder: own, files, manifest } of packages) {
      const named = new Set([
        name,
        ...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }),
        ...builtinModules,
      ]);
      const code = files.filter((file) => file.endsWith(".js"));
      const imports = (
        await Promise.all(code.map(async (file) => importsOf(file, await readFile(join(own, file), "utf8"))))
      ).flat();
      expect(imports.length, name).toBeGreaterThan(5);
      expect(
        imports.filter(({ target }) => !named.has(packageOf(target) ?? name)),
        name,
      ).toEqual([]);
    }
  });

  it("export modules that are there, patterns included", async () => {
    const entries = await Promise.all(packages.map(async ({ name, folder: own }) => [name, await entriesOf(own)] as const));
    expect(Object.fromEntries(entries)).toMatchObject({
      "@portico/core": expect.arrayContaining([".", "./node", "./openapi"]),
      "@portico/adapters": expect.arrayContaining(["./records/sqlite"]),
      "@portico/test": expect.arrayContaining(["./conformance/records"]),
      "@portico/presets": expect.arrayContaining(["./local"]),
      portico: expect.arrayContaining(["./start"]),
    });
    const specifiers = entries.flatMap(([name, own]) => own.map((entry) => name + entry.slice(1)));
    // Conformance suites can be loaded by vitest only.
    const loaded = specifiers.filter((specifier) => !specifier.startsWith("@portico/test"));
    const script = loaded.map((specifier) => `await import(${JSON.stringify(specifier)});`).join("");
    await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], { cwd: folder });
  });

  it("start a service that answers, and that stops on SIGTERM", async () => {
    const command = join(folder, "node_modules/portico/portico.mjs");
    await using service = await startService([process.execPath, command, "start", "--json"], folder);
    expect(Object.keys(service.urls).sort()).toEqual(["agent", "proxy", "workflow"]);
    expect((await fetch(`${service.urls["agent"]}/healthz`)).status).toBe(200);
    expect((await fetch(`${service.urls["proxy"]}/models`)).status).toBe(401);
    expect(await service.stop()).toBe(0);
  });
});

describe("the presets in a project without an annex", () => {
  it("start and serve, refuse workflow nodes, a console and MCP servers that are not installed, and say what to install", async () => {
    // Not below `folder`, where Node.js would find the annexes.
    const project = await mkdtemp(join(tmpdir(), "portico-without-annexes-"));
    onTestFinished(() => rm(project, { recursive: true }));
    const kernel = new Set(["core", "adapters", "plugins", "operator", "presets"].map((name) => `@portico/${name}`));
    for (const each of packages) if (kernel.has(each.name)) await install(each.name, each, project);
    const ofAnnexes = ["pg", "ioredis", "bullmq", "aws4fetch", "jsonata", "quickjs-emscripten-core"];
    await linkOthers(project, ofAnnexes);
    for (const name of [...ofAnnexes, "@portico/console", "@portico/mcp"])
      expect(existsSync(join(project, "node_modules", name))).toBe(false);
    await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
    await copyFile(join(root, "release/trial/local.ts"), join(project, "local.ts"));
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["local.ts"], { cwd: project });
    expect(stdout).toBe("served\n");
    expect(stderr).toContain("The web console is off: @portico/console is not installed");
    expect(stderr).toContain("Nodes of type http need the package @portico/workflow-nodes: install it");
  });
});

async function install(name: string, tarball: Tarball, project: string): Promise<Installed> {
  const to = join(project, "node_modules", name);
  await mkdir(to, { recursive: true });
  await promisify(execFile)("tar", ["-xzf", tarball.path, "-C", to, "--strip-components=1"]);
  const manifest = JSON.parse(await readFile(join(to, "package.json"), "utf8")) as Manifest;
  return { ...tarball, name, folder: to, manifest };
}

/** All other packages, as this repository has them: `npm run release:dry` gets them from the registry. */
async function linkOthers(project: string, without: readonly string[] = []): Promise<void> {
  // A room has those packages of its own whose version differs from what others have. Theirs are linked first, and stay.
  for (const room of PUBLISHED_ROOMS) await linkAll(join(root, room, "node_modules"), project, without);
  await linkAll(join(root, "node_modules"), project, without);
}

async function linkAll(modules: string, project: string, without: readonly string[]): Promise<void> {
  if (!existsSync(modules)) return;
  const names = (await readdir(modules)).filter((name) => !/^(?:\.|@|portico$)/.test(name) && !without.includes(name));
  const scopes = (await readdir(modules)).filter((name) => name.startsWith("@") && name !== "@portico");
  const scoped = await Promise.all(
    scopes.map(async (scope) => (await readdir(join(modules, scope))).map((name) => join(scope, name))),
  );
  for (const name of [...names, ...scoped.flat()]) {
    const to = join(project, "node_modules", name);
    await mkdir(dirname(to), { recursive: true });
    if (!existsSync(to)) await symlink(join(modules, name), to, "junction");
  }
}
