import { isDeepStrictEqual } from "node:util";
import { isRecord } from "@portico/core/contract";
import { VERSION_CHANGES } from "../contracts/limits.ts";
import { isReadable } from "../access/task-scope.ts";
import { readerOf, orStoreError, toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";
import { type Path, toJsonPath } from "../definition/definition-problem.ts";

/** One version of a definition, with its use by the runs that the caller may read. */
interface Version {
  readonly hash: string;
  readonly text: string;
  readonly isDeployed: boolean;
  runCount: number;
  firstUsedAt?: string;
  lastUsedAt?: string;
}

/** Lists the versions of a definition that runs used, and the deployed one, the newest first, each with what changed. */
export function listVersions(services: WorkflowServices): WorkflowHandlers["versions"] {
  const { catalogue, runs, definitions, readText } = services.runtime;
  return async ({ params: { id }, signal, fail }) => {
    const canRead = await readerOf(services, signal);
    const deployed = catalogue.find(id);
    const found = new Map<string, Version>();
    for await (const { hash, text } of orStoreError(definitions.ofWorkflow(id))) {
      found.set(hash, { hash, text, isDeployed: hash === deployed?.hash, runCount: 0 });
    }
    if (deployed && !found.has(deployed.hash)) {
      found.set(deployed.hash, { hash: deployed.hash, text: deployed.text, isDeployed: true, runCount: 0 });
    }
    if (found.size === 0) throw fail.workflow_not_found();
    for (const use of await runs.use.of(id, signal).catch(toStoreError)) {
      const version = found.get(use.definition);
      if (!version || !isReadable(use, canRead)) continue;
      const { firstUsedAt = use.firstUsedAt, lastUsedAt = use.lastUsedAt } = version;
      version.runCount += use.count;
      version.firstUsedAt = use.firstUsedAt < firstUsedAt ? use.firstUsedAt : firstUsedAt;
      version.lastUsedAt = use.lastUsedAt > lastUsedAt ? use.lastUsedAt : lastUsedAt;
    }
    const newest = [...found.values()].sort((one, other) => compare(order(other), order(one)));
    const written = newest.map(({ text }) => readText(text));
    const versions = newest.map(async ({ text: _text, hash, ...version }, index) => {
      const before = written[index + 1];
      return { version: hash, ...version, ...(before && changed(await before, await written[index])) };
    });
    return { versions: await Promise.all(versions) };
  };
}

/** A deployed version without runs is the newest. A version whose runs the caller may not read is the oldest. */
function order({ firstUsedAt, isDeployed }: Version): string {
  return firstUsedAt ?? (isDeployed ? "9" : "");
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function changed(before: unknown, after: unknown): { changes?: DefinitionChange[]; changeCount?: number } {
  if (before === undefined || after === undefined) return {};
  const changes = definitionChanges(before, after);
  return { changes: changes.slice(0, VERSION_CHANGES), changeCount: changes.length };
}

/** A place where two versions of a definition differ. It contains no values: definitions can contain credentials. */
interface DefinitionChange {
  /** JSONPath: `$.nodes.classify.with.prompt`. */
  readonly path: string;
  readonly change: "added" | "removed" | "changed";
}

/** Differences between two definitions as written, in the order of the newer one, then those that were removed. */
function definitionChanges(before: unknown, after: unknown): readonly DefinitionChange[] {
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
