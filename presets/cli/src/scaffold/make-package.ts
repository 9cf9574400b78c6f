import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { nearestWord } from "@portico/core";
import { VERSION } from "@portico/presets/platform/version";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { type PackageName, packageName } from "./package-name.ts";
import { portsWithTemplates, templateFiles } from "./template-files.ts";

export interface PackageOrder {
  readonly kind: "plugin" | "adapter" | "preset";
  readonly name: string;
  /** The port that an adapter fills; default: tools. */
  readonly port?: string | undefined;
}

export interface MadePackage {
  /** An absolute path. */
  readonly folder: string;
  /** Paths relative to the folder. */
  readonly files: readonly string[];
  /** Names of the packages that it needs, those for its development included. */
  readonly dependencies: readonly string[];
}

const DEFAULT_PORT = "tools";

/**
 * Create a package from a template, in a new folder of `cwd` with the package's name. Throws CommandFailed: 64 for an invalid name and for a
 * port without a template, 73 if the folder is not empty or cannot be written.
 */
export async function makePackage({ kind, name, port }: PackageOrder, cwd: string): Promise<MadePackage> {
  const names = packageName(name);
  const template = kind === "adapter" ? `adapter-${await knownPort(port ?? DEFAULT_PORT)}` : kind;
  const folder = resolve(cwd, names.kebab);
  const made = [...(await templateFiles("every")), ...(await templateFiles(template))];
  await refuseOccupied(folder, names.kebab);
  try {
    for (const { path, text } of made) {
      const target = join(folder, named(path, names));
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, path === "package.json" ? withVersions(named(text, names)) : named(text, names), { flag: "wx" });
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandFailed(
      `The folder ${names.kebab} cannot be written (${code ?? "unknown reason"})`,
      EXIT.cannotCreate,
      cause,
    );
  }
  const manifest = made.find(({ path }) => path === "package.json")!.text;
  return { folder, files: made.map(({ path }) => named(path, names)).toSorted(), dependencies: dependenciesOf(manifest) };
}

function dependenciesOf(manifest: string): string[] {
  const { dependencies, devDependencies } = JSON.parse(manifest) as Record<string, object | undefined>;
  return Object.keys({ ...dependencies, ...devDependencies });
}

async function knownPort(port: string): Promise<string> {
  const known = await portsWithTemplates();
  if (known.includes(port)) return port;
  const nearest = nearestWord(port, known);
  throw new CommandFailed(
    `There is no template for the port "${port}"; ${nearest ? `did you mean "${nearest}"?` : `available: ${known.join(", ")}`}`,
    EXIT.usage,
  );
}

async function refuseOccupied(folder: string, name: string): Promise<void> {
  if (!existsSync(folder)) return;
  const entries = await readdir(folder).catch(() => undefined);
  if (entries?.length === 0) return;
  throw new CommandFailed(
    entries ? `The folder ${name} already exists and is not empty` : `${name} already exists and is not a readable folder`,
    EXIT.cannotCreate,
  );
}

function named(text: string, { kebab, camel, pascal, constant }: PackageName): string {
  return text
    .replaceAll("sample-name", kebab)
    .replaceAll("sampleName", camel)
    .replaceAll("SampleName", pascal)
    .replaceAll("SAMPLE_NAME", constant);
}

/** Templates use the version `*` for packages of this repository. It is replaced by the version of this command. */
function withVersions(text: string): string {
  return text.replaceAll(/("(?:@portico\/\w+|portico)": )"\*"/g, `$1"^${VERSION}"`);
}
