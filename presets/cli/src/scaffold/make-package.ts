import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { nearestWord } from "@portico/core";
import { VERSION } from "@portico/presets/platform/version";
import { platformSchema } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { packageFile } from "../own-command.ts";
import { PRESET_NAMES } from "../preset-table.ts";

export interface PackageOrder {
  readonly kind: "plugin" | "adapter" | "preset";
  readonly name: string;
  /** The port that an adapter fills; default: tools. */
  readonly port?: string | undefined;
  /** A model provider with a protocol of its own. */
  readonly hasOwnProtocol?: boolean | undefined;
}

interface MadePackage {
  /** An absolute path. */
  readonly folder: string;
  /** Paths relative to the folder. */
  readonly files: readonly string[];
  /** Names of the packages that it needs, those for its development included. */
  readonly dependencies: readonly string[];
}

const DEFAULT_PORT = "tools";

/**
 * Create a package from a template, in a new folder of `cwd` with the package's name. Throws CommandFailed: 64 for an invalid name, for a
 * port without a template, and for a port without protocols of its own, 73 if the folder is not empty or cannot be written.
 */
export async function makePackage({ kind, name, port, hasOwnProtocol }: PackageOrder, cwd: string): Promise<MadePackage> {
  const names = packageName(name);
  const template = kind === "adapter" ? await adapterTemplate(port, hasOwnProtocol) : kind;
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

async function adapterTemplate(port: string | undefined, hasOwnProtocol = false): Promise<string> {
  if (!hasOwnProtocol) return `adapter-${await knownPort(port ?? DEFAULT_PORT)}`;
  if (port === undefined || port === "models") return "own-protocol-models";
  throw new CommandFailed("--own-protocol is for the port models", EXIT.usage);
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

/** A name in all spellings that templates use. */
interface PackageName {
  /** `tea-house`: files, packages, surfaces. */
  readonly kebab: string;
  /** `teaHouse`: values and settings. */
  readonly camel: string;
  /** `TeaHouse`: types. */
  readonly pascal: string;
  /** `TEA_HOUSE`: environment variables. */
  readonly constant: string;
}

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const LONGEST = 50;

/** Throws CommandFailed (64) for an invalid name, and for names that the platform itself uses. */
function packageName(kebab: string): PackageName {
  if (!NAME.test(kebab) || kebab.length > LONGEST) {
    throw new CommandFailed(
      `${JSON.stringify(kebab)} is not a valid name: use lowercase letters, digits and single hyphens, start with a letter, and use at most ${LONGEST} characters`,
      EXIT.usage,
    );
  }
  const words = kebab.split("-");
  const pascal = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
  const camel = pascal[0]!.toLowerCase() + pascal.slice(1);
  if (Object.hasOwn(platformSchema.entries, camel) || PRESET_NAMES.includes(kebab))
    throw new CommandFailed(`"${kebab}" is a reserved name of the platform: choose another name`, EXIT.usage);
  return { kebab, camel, pascal, constant: words.join("_").toUpperCase() };
}

/**
 * Each folder but `instance` is a working package with the name `sample-name`. The folder `every` has the files of all packages. `instance` is the
 * folder of a service.
 */
const TEMPLATES = fileURLToPath(packageFile("templates/"));

interface TemplateFile {
  /** Relative to the folder that is made. */
  readonly path: string;
  readonly text: string;
}

/** The files of a template. */
export async function templateFiles(template: string): Promise<readonly TemplateFile[]> {
  const folder = join(TEMPLATES, template);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    paths.map(async (path) => ({
      // npm does not publish files of this name unchanged.
      path: path.slice(folder.length + 1).replace(/^gitignore$/, ".gitignore"),
      text: await readFile(path, "utf8"),
    })),
  );
}

/** Ports with a template of an adapter. */
async function portsWithTemplates(): Promise<readonly string[]> {
  return (await readdir(TEMPLATES)).flatMap((name) => /^adapter-(.+)$/.exec(name)?.[1] ?? []).toSorted();
}
