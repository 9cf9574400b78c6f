import type { Blobs } from "../ports/blobs.ts";
import type { Clock } from "../ports/clock.ts";
import type { CollectionSpec, Records, Write } from "../ports/records.ts";
import type { Log } from "../ports/telemetry.ts";
import { readPages } from "./store-calls.ts";

/** Bytes without a record: of an upload that is not confirmed to the caller yet, or of a file whose record was removed. */
interface PendingUpload {
  readonly key: string;
  readonly pending: true;
  /** Milliseconds since 1970. 0 for a file whose record was removed: its bytes are no longer needed. */
  readonly begunAt: number;
}

/** The collection of these entries. */
export const pendingUploads: CollectionSpec = { name: "pending-uploads", indexes: { byAge: ["pending", "begunAt"] } };

/** The id of the entry for bytes with this key. */
export const pendingUpload = (key: string): string => key.replace("/", ":");

/** How often abandoned bytes are removed. */
export const PENDING_SWEEP_MS = 60 * 60_000;
/** Age at which an unfinished upload counts as abandoned. Its bytes are then removed. */
const ABANDONED_MS = 24 * 60 * 60_000;
const PAGE = 200;
/** Failed removals after which a sweep ends. */
const FAILURES = 20;

/** Notes of bytes that are being stored or removed (`createPendingUploads`). */
export type PendingUploads = ReturnType<typeof createPendingUploads>;

/**
 * Records which bytes are being stored or removed. Bytes and their record cannot be written in one commit. If a process dies in between,
 * these entries lead to the orphaned bytes, and a later sweep removes them.
 */
export function createPendingUploads(given: {
  readonly records: Records;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
}) {
  const { records, blobs, clock, log } = given;
  const pending = records.collection<PendingUpload>(pendingUploads);

  /**
   * Removes the bytes of removed files, and of uploads that started so long ago that they count as abandoned. Bytes that cannot be removed
   * hold none that come after them. Throws the first error at the end.
   */
  const sweep = async (closing: AbortSignal): Promise<void> => {
    const errors: unknown[] = [];
    const oldest = { where: { pending: true }, order: { by: "begunAt", direction: "ascending" }, limit: PAGE } as const;
    sweeping: for await (const items of readPages(pending, oldest)) {
      for (const { id, value, version } of items) {
        if (closing.aborted || clock.now() - value.begunAt < ABANDONED_MS) break sweeping;
        try {
          await blobs.remove(value.key);
        } catch (error) {
          // The storage may be away: it is not asked for everything.
          if (errors.push(error) === FAILURES) break sweeping;
          continue;
        }
        await pending.remove(id, version);
      }
    }
    if (errors.length > 0) throw errors[0];
  };

  return {
    sweep,
    /**
     * Remove a record (`commit`) and then its bytes. `commit` receives the write that notes the bytes, and must include it in its commit.
     * If the bytes cannot be removed now, the sweep removes them later. Returns the answer of `commit`: whether it removed the record.
     */
    async remove(key: string, commit: (notes: Write) => Promise<boolean>): Promise<boolean> {
      const isRemoved = await commit(noteOf(key));
      if (isRemoved) await undo([key]);
      return isRemoved;
    },
    /** As `remove`, for several records that are removed in one commit. */
    async removeAll(keys: readonly string[], commit: (notes: readonly Write[]) => Promise<void>): Promise<void> {
      await commit(keys.map(noteOf));
      await undo(keys);
    },
    /**
     * Store bytes (`put`) and then their record (`keep`). `keep` receives the write that ends the pending upload, and must include it in its
     * commit. Its result is returned. If either fails, the bytes are removed and its error is passed on.
     */
    async store<T, R>(key: string, put: () => Promise<T>, keep: (stored: T, ends: Write) => Promise<R>): Promise<R> {
      await pending.put(pendingUpload(key), { key, pending: true, begunAt: clock.now() });
      try {
        return await keep(await put(), pending.write.remove(pendingUpload(key)));
      } catch (error) {
        // A failed commit can still have taken effect. If its record exists, the bytes must stay.
        if (!(await isKept(key))) await undo([key]);
        throw error;
      }
    },
  };

  /** The commit of `keep` removes the entry of the pending upload. If the store cannot be read, the sweep decides later. */
  async function isKept(key: string): Promise<boolean> {
    return pending.get(pendingUpload(key)).then(
      (found) => found === undefined,
      () => true,
    );
  }

  function noteOf(key: string): Write {
    return pending.write.put(pendingUpload(key), { key, pending: true, begunAt: 0 });
  }

  async function undo(keys: readonly string[]): Promise<void> {
    const later = (error: unknown) =>
      log.warn("The bytes of a file could not be removed now; they will be removed later", {}, error);
    const removed = await Promise.all(
      keys.map((key) =>
        blobs.remove(key).then(
          () => [pending.write.remove(pendingUpload(key))],
          (error: unknown) => {
            later(error);
            return [];
          },
        ),
      ),
    );
    if (removed.flat().length > 0) await records.batch(removed.flat()).catch(later);
  }
}
