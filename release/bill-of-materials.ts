import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { runProgram } from "./run-program.ts";

/** The parts of a CycloneDX document that are used here. */
export interface BillOfMaterials {
  readonly bomFormat: "CycloneDX";
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

export interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

/** An entry of package-lock.json. */
interface LockEntry {
  readonly link?: boolean;
  readonly resolved?: string;
  readonly name?: string;
  readonly version?: string;
  readonly devDependencies?: object;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** The name of a project that depends only on the package. It exists only while its bill is made. */
const AROUND = "bill-of-materials";

/**
 * What a published package and its production dependencies consist of, as `npm sbom` tells it: the versions of package-lock.json, with which
 * the package was tested. `name` is a workspace of `lock`, the content of that file.
 */
export async function billOfMaterials(
  name: string,
  lock: { packages: Readonly<Record<string, LockEntry>> },
): Promise<BillOfMaterials> {
  const version = entryOf(name, lock.packages).version!;
  const project = { name: AROUND, version: "0.0.0", private: true, dependencies: { [name]: version } };
  const packages = { "": project, ...withoutOptionalPeers(installed(lock.packages)) };
  const folder = await mkdtemp(join(tmpdir(), "portico-bill-"));
  try {
    await writeFile(join(folder, "package.json"), JSON.stringify(project));
    await writeFile(
      join(folder, "package-lock.json"),
      JSON.stringify({ ...project, lockfileVersion: 3, requires: true, packages }),
    );
    // Not `--omit dev`: no development dependency is left here, and it would omit packages that are peers of others, too.
    const flags = ["--package-lock-only", "--sbom-format", "cyclonedx"];
    return ofPackage(JSON.parse(await runProgram("npm", ["sbom", ...flags], folder)) as BillOfMaterials, `${name}@${version}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The lockfile of this repository. */
export async function readLock(): Promise<{ packages: Readonly<Record<string, LockEntry>> }> {
  return JSON.parse(await readFile(resolve(import.meta.dirname, "../package-lock.json"), "utf8"));
}

function entryOf(name: string, packages: Readonly<Record<string, LockEntry>>): LockEntry {
  const { link, resolved } = packages[`node_modules/${name}`] ?? {};
  if (!link || resolved === undefined) throw new Error(`package-lock.json has no workspace ${name}`);
  return packages[resolved]!;
}

/** Workspaces as the installed packages that they are elsewhere. npm reports links without what they depend on. */
function installed(packages: Readonly<Record<string, LockEntry>>): Record<string, LockEntry> {
  const folders = Object.entries(packages)
    .flatMap(([path, { link, resolved }]) => (link && resolved ? [[resolved, path] as const] : []))
    // A workspace may lie in another one: the inner one is found first.
    .sort(([one], [other]) => other.length - one.length);
  const moved = Object.entries(packages).flatMap(([path, entry]) => {
    if (path === "" || entry.link) return [];
    const [folder, link] = folders.find(([each]) => path === each || path.startsWith(`${each}/`)) ?? [];
    if (folder === undefined) return [[path, entry] as const];
    const { devDependencies: _development, name: _name, ...kept } = entry;
    return [[`${link}${path.slice(folder.length)}`, kept] as const];
  });
  return Object.fromEntries(moved);
}

/** Optional peers are installed here for tools of this repository. An installation of the package does not get them. */
function withoutOptionalPeers(packages: Readonly<Record<string, LockEntry>>): Record<string, LockEntry> {
  const needed = ({ peerDependencies = {}, peerDependenciesMeta: about = {}, ...entry }: LockEntry): LockEntry => ({
    ...entry,
    peerDependencies: Object.fromEntries(Object.entries(peerDependencies).filter(([name]) => !about[name]?.optional)),
  });
  return Object.fromEntries(Object.entries(packages).map(([path, entry]) => [path, needed(entry)]));
}

/** The same bill, of the package and not of the project around it. */
function ofPackage(bill: BillOfMaterials, ref: string): BillOfMaterials {
  const component = bill.components.find((each) => each["bom-ref"] === ref);
  if (!component) throw new Error(`npm sbom does not list ${ref}`);
  const around = bill.metadata.component["bom-ref"];
  return {
    ...bill,
    metadata: { ...bill.metadata, component },
    components: bill.components.filter((each) => each !== component),
    dependencies: bill.dependencies.filter((each) => each.ref !== around),
  };
}
