import { hash } from "node:crypto";
import type { ports } from "@portico/core";

/** The documents that `copyDocuments` copies, and those that it may overwrite. */
export interface CopyDocumentsOptions {
  readonly from: Pick<ports.Documents, "list" | "read">;
  readonly to: Pick<ports.Documents, "list" | "read" | "write" | "remove">;
  /** Which names are copied and pruned. Default: all. */
  readonly accepts?: (name: string) => boolean;
  /**
   * The `digests` of the last copy, in either direction: a document of `to` that has another text since then was changed there, and
   * is a conflict. Default: every document that differs is a conflict.
   */
  readonly base?: Readonly<Record<string, string>>;
  /** Overwrite and remove documents although they are conflicts. */
  readonly force?: boolean;
  /** Remove documents that `from` does not have. */
  readonly prune?: boolean;
}

/** The results of `copyDocuments`, by names in the order of their UTF-8 bytes. */
export interface CopiedDocuments {
  readonly written: readonly string[];
  readonly removed: readonly string[];
  readonly unchanged: readonly string[];
  /** Documents that were changed in `to`. If there are any, nothing was written or removed. */
  readonly conflicts: readonly string[];
  /** SHA-256 of the texts that both sides have now, by name: the `base` of the next copy. */
  readonly digests: Readonly<Record<string, string>>;
}

interface Step {
  readonly name: string;
  /** Undefined removes the document. */
  readonly text: string | undefined;
  readonly present: ports.Document | undefined;
}

/**
 * Copy documents from one source or folder to another. Only documents that differ are written. Throws DocumentConflict if another
 * program changes a document of `to` meanwhile; some documents may have been copied then. Throws DocumentsUnavailable.
 */
export async function copyDocuments(options: CopyDocumentsOptions): Promise<CopiedDocuments> {
  const { to, base = {}, force = false } = options;
  const { steps, unchanged, digests } = await compare(options);
  const isConflict = ({ name, present }: Step): boolean => {
    const known = Object.hasOwn(base, name) ? base[name] : undefined;
    return !force && (present && digestOf(present.text)) !== known;
  };
  const conflicts = steps.filter(isConflict).map(({ name }) => name);
  if (conflicts.length > 0) return { written: [], removed: [], unchanged, conflicts, digests: { ...base } };

  for (const { name, text, present } of steps) {
    const expected = present?.version ?? "absent";
    if (text === undefined) await to.remove(name, expected);
    else await to.write(name, text, expected);
    if (text !== undefined) digests.set(name, digestOf(text));
  }
  const named = (isWritten: boolean) => steps.flatMap(({ name, text }) => ((text !== undefined) === isWritten ? [name] : []));
  return { written: named(true), removed: named(false), unchanged, conflicts, digests: Object.fromEntries(digests) };
}

interface Comparison {
  readonly steps: readonly Step[];
  readonly unchanged: readonly string[];
  /** Digests of the documents that both sides have already. */
  readonly digests: Map<string, string>;
}

async function compare({ from, to, accepts = () => true, prune = false }: CopyDocumentsOptions): Promise<Comparison> {
  const steps: Step[] = [];
  const digests = new Map<string, string>();
  const names = (await from.list()).filter(accepts);
  for (const name of names) {
    const [wanted, present] = await Promise.all([from.read(name), to.read(name)]);
    // Without one, it was removed after it was listed.
    if (wanted && wanted.text === present?.text) digests.set(name, digestOf(wanted.text));
    else if (wanted) steps.push({ name, text: wanted.text, present });
  }
  const unchanged = [...digests.keys()];
  if (!prune) return { steps, unchanged, digests };
  const kept = new Set(names);
  for (const name of (await to.list()).filter((each) => accepts(each) && !kept.has(each))) {
    const present = await to.read(name);
    if (present) steps.push({ name, text: undefined, present });
  }
  return { steps, unchanged, digests };
}

function digestOf(text: string): string {
  return hash("sha256", text, "hex");
}
