import { hash } from "node:crypto";
import { type ports, readPages } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";

/** States of one source that are told at the same time. */
const MOST_STATES = 1000;
const ALL_AT_ONCE = 1000;

/** A state that was told. */
interface Told {
  readonly source: string;
  /** It stays until this time, in milliseconds since 1970. */
  readonly until?: number | undefined;
}

/** Remembers in the records which states were told, so that each is told once while it lasts. */
export function createToldStates({ records, clock }: { readonly records: ports.Records; readonly clock: ports.Clock }) {
  const states = records.collection<Told>({ name: "notification-states", indexes: { bySource: ["source"] } });
  return {
    /**
     * Tells the states of a source that were not told, and forgets those that were not found. `writeOf` makes the message. Its id is unique for each
     * time that a state begins.
     */
    async compare(
      source: string,
      found: readonly ports.NotifiedState[],
      writeOf: (id: string, state: ports.NotifiedState) => ports.Write,
    ): Promise<void> {
      const told = new Map<string, ports.Stored<Told>>();
      for await (const page of readPages(states, { where: { source }, limit: ALL_AT_ONCE }))
        for (const each of page) told.set(each.id, each);
      const present = new Set<string>();
      const now = clock.now();
      for (const state of found.slice(0, MOST_STATES)) {
        const id = digestOf(source, state.id);
        present.add(id);
        if (told.has(id)) continue;
        const note = { source, ...(state.onceUntil !== undefined && { until: state.onceUntil }) };
        // One commit: a kill leaves both or none of them. A conflict: another process has told it.
        await records
          .batch([states.write.put(id, note, "absent"), writeOf(digestOf(source, state.id, now), state)])
          .catch(undefinedAtConflict);
      }
      for (const [id, { value, version }] of told) {
        if (present.has(id) || (value.until !== undefined && value.until > now)) continue;
        await states.remove(id, version).catch(undefinedAtConflict);
      }
    },
  };
}

/** A name that is the same in all processes, and after a kill. */
export function digestOf(...parts: readonly (string | number)[]): string {
  return hash("sha256", JSON.stringify(parts), "base64url").slice(0, 32);
}
