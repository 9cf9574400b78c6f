import { CHUNKS } from "./bundle-package.ts";

/** A package.json, as far as it matters here. */
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
 * What a package says of itself where it is published: compiled files in place of sources, and nothing that only matters in the
 * repository. TypeScript finds a declaration file beside the file that an entry names.
 */
export function publishedManifest(source: Manifest, repository: Repository | undefined): object {
  const { devDependencies: _development, ...kept } = source;
  return {
    ...kept,
    ...(kept.imports && { imports: compiledPaths(kept.imports) }),
    // What modules share is no module of the package's, though a pattern would let it be one.
    exports: { ...compiledPaths(kept.exports), ...(kept.exports["./*"] && { [`./${CHUNKS}/*`]: null }) },
    publishConfig: { access: kept.publishConfig.access },
    ...(repository && { repository: { type: "git", ...repository } }),
  };
}

/** Where the compiled file of a source stands in the published package: `./src/a.ts`, `./a.ts` → `./dist/a.js`. */
export function compiledPath(source: string): string {
  return source.replace(/^\.\/(?:src\/)?(.*)\.ts$/, "./dist/$1.js");
}

function compiledPaths(paths: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, compiledPath(path)]));
}
