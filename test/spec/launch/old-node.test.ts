import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { root } from "../../rooms/repository.ts";

const run = promisify(execFile);
const TEMPLATES = join(root, "presets/cli/templates");

/** The folder of a Node.js of this machine that is too old for Portico, with its npm. */
async function findOldNode(): Promise<{ readonly bin: string; readonly version: string } | undefined> {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
  for (const bin of folders.filter((folder) => existsSync(join(folder, "node")) && existsSync(join(folder, "npm")))) {
    const version = (await run(join(bin, "node"), ["-p", "process.versions.node"])).stdout.trim();
    const [major = 0, minor = 0] = version.split(".").map(Number);
    if (major < 22 || (major === 22 && minor < 19)) return { bin, version };
  }
  return undefined;
}

const old = await findOldNode();
if (!old) console.warn("No Node.js older than 22.19 is on the PATH: templates are not tried with one");

const scripts = readdirSync(TEMPLATES)
  .filter((template) => existsSync(join(TEMPLATES, template, "package.json")))
  .flatMap((template) => {
    const manifest = JSON.parse(readFileSync(join(TEMPLATES, template, "package.json"), "utf8")) as {
      scripts: Readonly<Record<string, string>>;
    };
    return ["start", "test"].filter((script) => script in manifest.scripts).map((script) => ({ template, script }));
  });

describe.skipIf(!old)("with a Node.js that is too old", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => {
    folder = temporaryFolder();
  });
  afterEach(() => folder.remove());

  it.each(scripts)(
    "npm run $script of the template $template prints one line, and ends with 69",
    async ({ template, script }) => {
      cpSync(join(TEMPLATES, template), folder.path, { recursive: true });
      mkdirSync(join(folder.path, "node_modules/@portico"), { recursive: true });
      symlinkSync(join(root, "core"), join(folder.path, "node_modules/@portico/core"));
      const env = { PATH: [old!.bin, "/usr/bin", "/bin"].join(delimiter), HOME: folder.path };
      const ended = run(join(old!.bin, "npm"), ["run", "--silent", script], { cwd: folder.path, env });
      await expect(ended).rejects.toMatchObject({
        code: 69,
        stdout: "",
        stderr: `Portico needs Node.js 22.19 or newer; this is ${old!.version}.\n`,
      });
    },
  );

  it("the command line of a checkout runs with the Node.js of the checkout, and passes its end on", async () => {
    const launcher = join(root, "presets/cli/portico.mjs");
    const env = { PATH: "/usr/bin:/bin", HOME: folder.path, PORTICO_AUTO_PROVIDERS: "false" };
    const node = join(old!.bin, "node");
    await expect(run(node, [launcher, "doctr"], { cwd: folder.path, env })).rejects.toMatchObject({ code: 64, stdout: "" });
    const service = spawn(node, [launcher, "start", "--json"], { cwd: folder.path, env, stdio: ["ignore", "pipe", "ignore"] });
    const [line] = (await once(service.stdout, "data")) as [Buffer];
    expect(JSON.parse(line.toString())).toMatchObject({ event: "ready" });
    const ended = once(service, "exit");
    service.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  it("node runs the check of a program that loads it first", async () => {
    const check = join(root, "core/needed-node.cjs");
    await expect(run(join(old!.bin, "node"), ["-r", check, "main.ts"])).rejects.toMatchObject({ code: 69, stdout: "" });
  });
});
