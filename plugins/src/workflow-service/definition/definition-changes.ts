import { isDeepStrictEqual } from "node:util";
import { type Path, toJsonPath } from "./definition-problem.ts";
import { isRecord } from "@portico/core/contract";

/** A place where two versions of a definition differ. It contains no values: definitions can contain credentials. */
export interface DefinitionChange {
  /** JSONPath: `$.nodes.classify.with.prompt`. */
  readonly path: string;
  readonly change: "added" | "removed" | "changed";
}

/** Differences between two definitions as written, in the order of the newer one, then those that were removed. */
export function definitionChanges(before: unknown, after: unknown): readonly DefinitionChange[] {
  return [...changesAt(before, after, [])];
}

function* changesAt(before: unknown, after: unknown, path: Path): Generator<DefinitionChange> {
  if (!isRecord(before) || !isRecord(after)) {
    if (!isDeepStrictEqual(before, after)) yield { path: toJsonPath(path), change: "changed" };
    return;
  }
  for (const [key, value] of Object.entries(after)) {
    const at = [...path, key];
    if (Object.hasOwn(before, key)) yield* changesAt(before[key], value, at);
    else yield { path: toJsonPath(at), change: "added" };
  }
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) yield { path: toJsonPath([...path, key]), change: "removed" };
  }
}
