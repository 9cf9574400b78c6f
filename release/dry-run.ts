// Tests the packages of a release as their users will use them: `npm run release:dry`. Leaves the packages in `dist/packages`,
// ready to be published.
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { billOfMaterials, readLock } from "./bill-of-materials.ts";
import { buildPackages, PACKAGES } from "./build-packages.ts";
import { checkBill } from "./check-bill.ts";
import { checkTarball } from "./check-tarball.ts";
import { createProject, type EmptyProject } from "./empty-project.ts";
import { entriesOf } from "./entries.ts";
import { BILL, type Manifest } from "./manifest.ts";
import { packPackages } from "./pack-packages.ts";
import { trialsOf } from "./trials.ts";

const root = resolve(import.meta.dirname, "..");
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(2)} MB`;

const built = await buildPackages(PACKAGES);
const lock = await readLock();
const components = await Promise.all(built.map(({ name, folder }) => writeBill(name, folder)));
const tarballs = await packPackages(
  built.map(({ folder }) => folder),
  PACKAGES,
);
const packed = await Promise.all(
  built.map(async ({ name, folder }, at) => ({ name, entries: await entriesOf(folder), ...tarballs[at]! })),
);
for (const { name, size, unpackedSize, files } of packed) {
  console.log(`${name.padEnd(18)} ${megabytes(size).padStart(8)} packed, ${megabytes(unpackedSize)} in ${files.length} files`);
}

const found = (await Promise.all(packed.map(({ path, entries }) => checkTarball(path, entries)))).flat();
if (found.length > 0) throw new Error(`Not fit to be published:\n${found.join("\n")}`);
console.log("publint and @arethetypeswrong/core find nothing.");
console.log(`The bills of materials list ${Math.min(...components)} to ${Math.max(...components)} packages.\n`);

const pathOf = (name: string) => packed.find((each) => each.name === name)!.path;
const kernel = ["@portico/core", "@portico/adapters", "@portico/plugins", "@portico/operator", "@portico/presets"].map(pathOf);
{
  await using host = await createProject(join(import.meta.dirname, "trial"));
  await host.install(kernel);
  await tellSize("the presets without an annex", host);
  console.log(`- an app without an annex: ${(await host.run("node", "local.ts")).trim()}\n`);
}

await using project = await createProject(join(import.meta.dirname, "trial"));
const annexes = ["@portico/clouds", "@portico/cluster", "@portico/console", "@portico/mcp", "@portico/workflow-nodes"].map(
  pathOf,
);
await project.install([pathOf("portico"), ...kernel, ...annexes]);
await tellSize("portico", project);

const { devDependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
  devDependencies: Readonly<Record<string, string>>;
};
const tools = ["vitest", "typescript", "@types/node"].map((name) => `${name}@${devDependencies[name]}`);
await project.install([pathOf("@portico/client"), pathOf("@portico/test"), ...tools]);
const specifiers = packed.flatMap(({ name, entries }) => entries.map((entry) => name + entry.slice(1)));
for (const { name, run } of trialsOf(specifiers)) console.log(`- ${name}: ${await run(project)}`);

async function tellSize(what: string, { measure }: EmptyProject): Promise<void> {
  const { packages, bytes } = await measure();
  console.log(`Installed, ${what}: ${packages} packages, ${megabytes(bytes)}`);
}

/** Returns the number of packages that it lists. Throws if it is not complete, or invalid. */
async function writeBill(name: string, folder: string): Promise<number> {
  const bill = await billOfMaterials(name, lock);
  const { dependencies = {} } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
  const faults = await checkBill(bill, Object.keys(dependencies));
  if (faults.length > 0) throw new Error(`The bill of materials of ${name} is wrong:\n${faults.join("\n")}`);
  await writeFile(join(folder, BILL), `${JSON.stringify(bill, null, 2)}\n`);
  return bill.components.length;
}
