/** A file or a folder (with a trailing `/`) of this package, by its path in the package. Works also if a build merges modules. */
export function packageFile(path: string): URL {
  return new URL(path, import.meta.resolve("#package.json"));
}
