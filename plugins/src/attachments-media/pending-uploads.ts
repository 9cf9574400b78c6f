import type { ports } from "@portico/core";
import { ABANDONED_MS } from "./limits.ts";

/** Bytes without a record: of an upload that is not confirmed to the caller yet, or of a file whose record was removed. */
interface PendingUpload {
  readonly key: string;
  readonly pending: true;
  /** Milliseconds since 1970. 0 for a file whose record was removed: its bytes are no longer needed. */
  readonly begunAt: number;
}

/** The collection of these entries. */
export const pendingUploads: ports.CollectionSpec = { name: "pending-uploads", indexes: { byAge: ["pending", "begunAt"] } };

/** The id of the entry for bytes with this key. */
export const pendingUpload = (key: string): string => key.replace("/", ":");

/** How often abandoned bytes are removed. */
export const PENDING_SWEEP_MS = 60 * 60_000;
const PAGE = 200;

export type PendingUploads = ReturnType<typeof createPendingUploads>;

/**
 * Records which bytes are being stored or removed. Bytes and their record cannot be written in one commit. If a process dies in between,
 * these entries lead to the orphaned bytes, and a later sweep removes them.
 */
export function createPendingUploads(given: {
  readonly records: ports.Records;
  readonly blobs: ports.Blobs;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
}) {
  const { records, blobs, clock, log } = given;
  const pending = records.collection<PendingUpload>(pendingUploads);

  /** Removes the bytes of removed files, and of uploads that started so long ago that they count as abandoned. */
  const sweep = async (closing: AbortSignal): Promise<void> => {
    const oldest = { where: { pending: true }, order: { by: "begunAt", direction: "ascending" }, limit: PAGE } as const;
    const { items } = await pending.query(oldest);
    for (const { id, value, version } of items) {
      if (closing.aborted || clock.now() - value.begunAt < ABANDONED_MS) return;
      await blobs.remove(value.key);
      await pending.remove(id, version);
    }
  };

  return {
    sweep,
    /**
     * Remove a record (`commit`) and then its bytes. `commit` receives the write that notes the bytes, and must include it in its commit.
     * If the bytes cannot be removed now, the sweep removes them later. Returns the answer of `commit`: whether it removed the record.
     */
    async remove(key: string, commit: (notes: ports.Write) => Promise<boolean>): Promise<boolean> {
      const isRemoved = await commit(pending.write.put(pendingUpload(key), { key, pending: true, begunAt: 0 }));
      if (isRemoved) await undo(key);
      return isRemoved;
    },
    /**
     * Store bytes (`put`) and then their record (`keep`). `keep` receives the write that ends the pending upload, and must include it in its
     * commit. Its result is returned. If either fails, the bytes are removed and its error is passed on.
     */
    async store<T, R>(key: string, put: () => Promise<T>, keep: (stored: T, ends: ports.Write) => Promise<R>): Promise<R> {
      await pending.put(pendingUpload(key), { key, pending: true, begunAt: clock.now() });
      try {
        return await keep(await put(), pending.write.remove(pendingUpload(key)));
      } catch (error) {
        // A failed commit can still have taken effect. If its record exists, the bytes must stay.
        if (!(await isKept(key))) await undo(key);
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

  async function undo(key: string): Promise<void> {
    try {
      await blobs.remove(key);
      await pending.remove(pendingUpload(key));
    } catch (error) {
      log.warn("The bytes of a file could not be removed now; they will be removed later", {}, error);
    }
  }
}
