/**
 * What `load` imports of an optional peer dependency. Undefined if the package is not installed; any other fault of the import is thrown. Presets are
 * made without waiting, so modules call this while they load.
 */
export async function ifInstalled<T>(packageName: string, load: () => Promise<T>): Promise<T | undefined> {
  try {
    return await load();
  } catch (error) {
    if (isMissing(error, packageName)) return undefined;
    throw error;
  }
}

/** A package that is installed may lack a module of its own or of another package: that is a fault. */
function isMissing(error: unknown, packageName: string): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  // Node.js quotes the name of the package, Deno and Bun what was imported.
  return code === "ERR_MODULE_NOT_FOUND" && [`'${packageName}`, `"${packageName}`].some((quoted) => message.includes(quoted));
}
