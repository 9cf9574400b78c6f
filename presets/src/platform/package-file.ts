/** A file or a folder (with `/` at its end) of this package, by its path there: modules may be moved together when the package is built. */
export function packageFile(path: string): URL {
  return new URL(path, import.meta.resolve("#package.json"));
}
