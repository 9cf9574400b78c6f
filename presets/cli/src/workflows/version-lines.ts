import { printable } from "../terminal/printable.ts";
import type { DefinitionVersion } from "./running-service.ts";

/** Enough of a hash to distinguish the versions of one definition. */
const HASH_CHARACTERS = 12;
const SIGNS = { added: "+", removed: "-", changed: "~" } as const;

/** The versions for a person: one line for each, followed by what changed since the version before. */
export function versionLines(versions: readonly DefinitionVersion[]): string {
  return versions.flatMap(linesOf).map(printable).join("\n");
}

function linesOf(each: DefinitionVersion): string[] {
  const { version, isDeployed, runCount, firstUsedAt, lastUsedAt, changes = [], changeCount = 0 } = each;
  const runs = runCount === 1 ? "1 run" : `${runCount} runs`;
  const used = firstUsedAt === undefined ? "" : `, ${firstUsedAt} to ${lastUsedAt}`;
  const more = changeCount - changes.length;
  return [
    `${version.slice(0, HASH_CHARACTERS)}  ${runs}${used}${isDeployed ? ", deployed" : ""}`,
    ...changes.map(({ path, change }) => `    ${SIGNS[change]} ${path}`),
    ...(more > 0 ? [`    and ${more} more`] : []),
  ];
}
