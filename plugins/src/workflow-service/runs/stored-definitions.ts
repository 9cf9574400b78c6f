import type { ports } from "@portico/core";
import type { Definition } from "../definition/definition.ts";

interface StoredDefinition {
  readonly workflowId: string;
  /** The document's name, from which the id comes where the text has none. */
  readonly document: string;
  readonly text: string;
}

/** Loads the text of a definition again. Undefined where it cannot be used any more. */
export type LoadStored = (stored: { readonly name: string; readonly text: string }) => Definition | undefined;

/** A definition that stays in memory while somebody works with it. */
export interface HeldDefinition {
  readonly definition: Definition | undefined;
  release(): void;
}

export type StoredDefinitions = ReturnType<typeof createStoredDefinitions>;

/**
 * The definitions that runs started with, by hash: a run keeps its own, whatever becomes of the file (open points 8). Functions throw
 * RecordsUnavailable.
 */
export function createStoredDefinitions(given: {
  readonly records: ports.Records;
  /** The definition that is deployed now, if it has this hash. */
  current(workflowId: string, hash: string): Definition | undefined;
  readonly load: LoadStored;
}) {
  const { records, current, load } = given;
  const stored = records.collection<StoredDefinition>({ name: "workflow-definitions" });
  const kept = new Set<string>();
  /** Those that are not deployed any more, while runs execute with them. */
  const older = new Map<string, { readonly definition: Definition; users: number }>();

  return {
    /** Resolves when runs can be started with it. */
    async keep(definition: Definition, document: string): Promise<void> {
      const { id, hash, text } = definition;
      if (kept.has(hash)) return;
      await stored.put(hash, { workflowId: id, document, text });
      kept.add(hash);
    },
    /** The definition of a run, until it is released; undefined where it cannot be used any more. */
    async hold(workflowId: string, hash: string): Promise<HeldDefinition> {
      const deployed = current(workflowId, hash);
      if (deployed) return { definition: deployed, release() {} };
      let entry = older.get(hash);
      if (!entry) {
        const found = (await stored.get(hash))?.value;
        const definition = found && load({ name: found.document, text: found.text });
        if (!definition) return { definition, release() {} };
        // Another run may have come first.
        entry = older.get(hash) ?? { definition, users: 0 };
        older.set(hash, entry);
      }
      const held = entry;
      held.users++;
      return {
        definition: held.definition,
        release() {
          if (--held.users === 0) older.delete(hash);
        },
      };
    },
  };
}
