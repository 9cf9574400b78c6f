import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type LanguageModel, SPECIFICATIONS } from "./language-model.ts";

/** A provider of the AI SDK: it makes models by their names. */
export type AiSdkProvider = ((model: string) => LanguageModel) | { languageModel(model: string): LanguageModel };

/** Where a provider of the AI SDK comes from. */
export interface PackageSource {
  readonly package: string;
  /** The name of the function that creates the provider. Default: the only export of the form `createName`. */
  readonly create?: string | undefined;
  readonly options: Readonly<Record<string, unknown>>;
  /** Absolute folder in whose `node_modules` the package is installed. */
  readonly folder: string;
}

/** The name of a package, without a path and without a version. */
export const PACKAGE_NAME: RegExp = /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/;

/**
 * Creates the provider of an installed package.
 * @throws Error for a package that is not installed, and for one without such a function.
 */
export async function loadProvider(id: string, source: PackageSource): Promise<AiSdkProvider> {
  if (!PACKAGE_NAME.test(source.package)) throw new Error(`Provider "${id}": "package" must be the name of a package`);
  const exported = await importPackage(id, source);
  const makers = Object.keys(exported).filter((name) => /^create[A-Z]/.test(name) && typeof exported[name] === "function");
  const name = source.create ?? (makers.length === 1 ? makers[0] : undefined);
  const create = name === undefined ? undefined : exported[name];
  if (typeof create !== "function") {
    const found = makers.length > 0 ? `one of ${makers.join(", ")}` : "a function that creates the provider";
    throw new Error(`Provider "${id}": "create" must name ${found} of the package ${source.package}`);
  }
  return create(source.options) as AiSdkProvider;
}

/**
 * One model of a provider.
 * @throws Error for a specification that cannot be served.
 */
export function modelOf(id: string, provider: AiSdkProvider, name: string): LanguageModel {
  const model = "languageModel" in provider ? provider.languageModel(name) : provider(name);
  const version = model?.specificationVersion;
  if (SPECIFICATIONS.includes(version)) return model;
  const found = typeof version === "string" ? `has version ${version}` : "has no version";
  throw new Error(
    `Provider "${id}": the model's specification ${found}; ${SPECIFICATIONS.join(", ")} can be served. Update the package.`,
  );
}

/** From the folder of the user first: this package may be installed somewhere else, for example globally. */
async function importPackage(id: string, { package: name, folder }: PackageSource): Promise<Readonly<Record<string, unknown>>> {
  const address = resolved(name, folder) ?? resolved(name, import.meta.dirname);
  if (address === undefined)
    throw new Error(`Provider "${id}": the package ${name} is not installed. Run "npm install ${name}" in ${folder}`);
  return (await import(address)) as Readonly<Record<string, unknown>>;
}

function resolved(name: string, folder: string): string | undefined {
  try {
    return pathToFileURL(createRequire(join(folder, "package.json")).resolve(name)).href;
  } catch (error) {
    // A package that is installed and broken is reported as it is.
    if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
