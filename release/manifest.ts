/** Folder below a package's `dist` for code that several of its modules share. */
export const CHUNKS = "chunks";

/** The file of a published package that lists what it consists of. */
export const BILL = "bill-of-materials.cdx.json";

/** The parts of a package.json that are used here. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly files: readonly string[];
  readonly bin?: Readonly<Record<string, string>>;
  readonly imports?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly publishConfig: { readonly access: "public"; readonly directory: string };
}

/** The public home of the sources, which registries check against a package's provenance. */
export interface Repository {
  readonly url: string;
  /** The package's folder in it. */
  readonly directory: string;
}

/**
 * The package.json of a published package: compiled files in place of sources, without entries that matter only in the
 * repository. TypeScript finds a declaration file next to each entry's file.
 */
export function publishedManifest(source: Manifest, repository: Repository | undefined): object {
  const { devDependencies: _development, ...kept } = source;
  return {
    ...kept,
    files: [...kept.files, BILL],
    ...(kept.imports && { imports: compiledPaths(kept.imports) }),
    // Shared chunks are not modules of the package, even if a pattern matches them.
    exports: { ...compiledPaths(kept.exports), ...(kept.exports["./*"] && { [`./${CHUNKS}/*`]: null }) },
    publishConfig: { access: kept.publishConfig.access },
    ...(repository && { repository: { type: "git", ...repository } }),
  };
}

/** Path of the compiled file of a source in the published package: `./src/a.ts`, `./a.ts` → `./dist/a.js`. */
export function compiledPath(source: string): string {
  return source.replace(/^\.\/(?:src\/)?(.*)\.ts$/, "./dist/$1.js");
}

function compiledPaths(paths: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, compiledPath(path)]));
}
