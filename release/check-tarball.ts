import { readFile } from "node:fs/promises";
import { checkPackage, createPackageFromTarballData, type Problem } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

/** Problems of CommonJS callers and of module resolution before `exports`: these packages are ES modules, found by `exports`. */
const OTHER_WORLDS = new Set(["node10", "node16-cjs"]);
/** The templates of `portico new` become packages only after they are copied. */
const TEMPLATE = /^\.\/templates\//;

/** All problems that `publint` and `@arethetypeswrong/core` find in a packed package, one line each. Empty without problems. */
export async function checkTarball(tarball: string, entries: readonly string[]): Promise<string[]> {
  const bytes = await readFile(tarball);
  const { messages, pkg } = await publint({ pack: { tarball: toArrayBuffer(bytes) }, strict: true });
  const lines = messages
    .filter((message) => !(message.code === "NESTED_PACKAGE_JSON_FIELD_IGNORED" && TEMPLATE.test(message.args.filePath)))
    .map((message) => `publint: ${formatMessage(message, pkg, { color: false })}`);

  const result = await checkPackage(createPackageFromTarballData(bytes), { entrypoints: [...entries] });
  if (!result.types) return [...lines, "attw: the package has no types"];
  return [...lines, ...result.problems.filter(concernsUs).map((problem) => `attw: ${JSON.stringify(problem)}`)];
}

function concernsUs(problem: Problem): boolean {
  return !("resolutionKind" in problem && OTHER_WORLDS.has(problem.resolutionKind));
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
