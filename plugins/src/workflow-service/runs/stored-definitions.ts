import { type ports, readPages, writeAgain } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import type { Definition } from "../definition/definition.ts";

interface StoredDefinition {
  readonly workflowId: string;
  /** The document's name. It determines the id if the text has no id. */
  readonly document: string;
  readonly text: string;
  /** No run starts with it after that time, unless it is stored again: milliseconds since 1970. */
  readonly usedUntil: number;
}

/** A definition that runs are started with is written as often. */
const USE_MS = 24 * 60 * 60_000;
/** Starts that took long, and clocks of several machines. */
const MARGIN_MS = 24 * 60 * 60_000;
/** Texts of definitions may be long. */
const PAGE = 20;

/** Loads the text of a definition again. Undefined where it cannot be used any more. */
export type LoadStored = (stored: { readonly name: string; readonly text: string }) => Promise<Definition | undefined>;

/** A definition that stays in memory while it is in use. */
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
  readonly clock: ports.Clock;
  /** The definition that is deployed now, if it has this hash. */
  current(workflowId: string, hash: string): Definition | undefined;
  readonly load: LoadStored;
}) {
  const { records, clock, current, load } = given;
  const stored = records.collection<StoredDefinition>({ name: "workflow-definitions", indexes: { by_use: ["usedUntil"] } });
  /** By hash: the `usedUntil` that this process wrote. */
  const storedUntil = new Map<string, number>();
  /** Those that are not deployed any more, while runs execute with them. */
  const older = new Map<string, { readonly definition: Definition; users: number }>();

  return {
    /** Resolves when runs can be started with it. */
    async store(definition: Definition, document: string): Promise<void> {
      const { id, hash, text } = definition;
      const now = clock.now();
      if ((storedUntil.get(hash) ?? 0) > now) return;
      const usedUntil = now + USE_MS;
      await stored.put(hash, { workflowId: id, document, text, usedUntil });
      storedUntil.set(hash, usedUntil);
    },
    /** Keeps a stored definition for another run, also if it is no longer deployed. */
    renew(hash: string): Promise<void> {
      return writeAgain(async () => {
        const read = await stored.get(hash);
        if (read) await stored.put(hash, { ...read.value, usedUntil: clock.now() + USE_MS }, read.version);
      });
    },
    /** The stored definitions of a workflow. Reads those of all workflows, of which there are few. */
    async *ofWorkflow(workflowId: string): AsyncGenerator<{ readonly hash: string; readonly text: string }, void> {
      for await (const items of readPages(stored, { limit: PAGE })) {
        for (const { id, value } of items) if (value.workflowId === workflowId) yield { hash: id, text: value.text };
      }
    },
    /** The workflows that have stored definitions. */
    async workflowIds(): Promise<ReadonlySet<string>> {
      const found = new Set<string>();
      for await (const items of readPages(stored, { limit: PAGE })) for (const { value } of items) found.add(value.workflowId);
      return found;
    },
    /** Removes definitions that no stored run has, and with which no run is about to start. */
    async sweep(isUsed: (hash: string) => Promise<boolean>, closing: AbortSignal): Promise<void> {
      const unused = clock.now() - MARGIN_MS;
      const order = { by: "usedUntil", direction: "ascending" } as const;
      for await (const items of readPages(stored, { order, limit: PAGE })) {
        for (const { id, version, value } of items) {
          if (closing.aborted || value.usedUntil > unused) return;
          if (await isUsed(id)) continue;
          // A conflict: a run is about to start with it.
          await stored.remove(id, version).catch(undefinedAtConflict);
        }
      }
    },
    /** The text of a definition with which runs began. Undefined if the store no longer has it. */
    async textOf(workflowId: string, hash: string): Promise<string | undefined> {
      return current(workflowId, hash)?.text ?? (await stored.get(hash))?.value.text;
    },
    /** The definition of a run, until it is released; undefined where it cannot be used any more. */
    async hold(workflowId: string, hash: string): Promise<HeldDefinition> {
      const deployed = current(workflowId, hash);
      if (deployed) return { definition: deployed, release() {} };
      let entry = older.get(hash);
      if (!entry) {
        const found = (await stored.get(hash))?.value;
        const definition = found && (await load({ name: found.document, text: found.text }));
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
