import type { Collection } from "../ports/records.ts";
import { SealBroken, type Sealing } from "../ports/sealing.ts";
import { readPages, undefinedAtConflict } from "./store-calls.ts";

/** A record of which a text is sealed. */
export interface SealedRecord {
  readonly sealed?: string | undefined;
}

/** Which records, and in which context their texts are sealed. */
export interface SealedCollection<T extends SealedRecord> {
  readonly collection: Collection<T>;
  readonly contextOf: (id: string, value: T) => string;
  /** Records that are left out now. Default: none. */
  readonly leavesOut?: ((value: T) => boolean) | undefined;
}

/**
 * Seals the texts of long-lived records again that were sealed with an earlier key of the instance, so that this key can be taken away. A record
 * that cannot be opened stays as it is, and so does one that is written meanwhile: its text is sealed with the present key. Throws
 * RecordsUnavailable and SealingUnavailable.
 */
export async function sealAgain<T extends SealedRecord>(
  { collection, contextOf, leavesOut = () => false }: SealedCollection<T>,
  sealing: Sealing,
  closing: AbortSignal,
): Promise<void> {
  for await (const page of readPages(collection, {})) {
    for (const { id, version, value } of page) {
      if (closing.aborted) return;
      const { sealed } = value;
      if (sealed === undefined || leavesOut(value) || !(await sealing.isOutdated(sealed))) continue;
      const context = contextOf(id, value);
      const text = await sealing.open(context, sealed).catch(undefinedIfBroken);
      if (text === undefined) continue;
      await collection.put(id, { ...value, sealed: await sealing.seal(context, text) }, version).catch(undefinedAtConflict);
    }
  }
}

function undefinedIfBroken(error: unknown): undefined {
  if (!(error instanceof SealBroken)) throw error;
}
