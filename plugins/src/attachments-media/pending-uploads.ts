import type { ports } from "@portico/core";
import { ABANDONED_MS } from "./limits.ts";

/** An upload that has started, but is not confirmed to the caller yet. */
interface PendingUpload {
  readonly key: string;
  readonly pending: true;
  /** Milliseconds since 1970. */
  readonly begunAt: number;
}

const SWEEP_MS = 60 * 60_000;
const PAGE = 200;

/**
 * Records which bytes are being stored. Bytes and their record cannot be written in one commit. If a process dies in between, these entries
 * lead to the orphaned bytes, and a later sweep removes them.
 */
export function createPendingUploads(given: {
  readonly records: ports.Records;
  readonly blobs: ports.Blobs;
  readonly engine: ports.Engine;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
}) {
  const { records, blobs, engine, clock, log } = given;
  const pending = records.collection<PendingUpload>({ name: "pending-uploads", indexes: { byAge: ["pending", "begunAt"] } });
  const idOf = (key: string) => key.replace("/", ":");

  /** Removes uploads that started so long ago that they count as abandoned. */
  const sweep = async (closing: AbortSignal): Promise<void> => {
    const oldest = { where: { pending: true }, order: { by: "begunAt", direction: "ascending" }, limit: PAGE } as const;
    const { items } = await pending.query(oldest);
    for (const { id, value, version } of items) {
      if (closing.aborted || clock.now() - value.begunAt < ABANDONED_MS) return;
      await blobs.remove(value.key);
      await pending.remove(id, version);
    }
  };
  // The chore also runs at the start, so that abandoned bytes are removed even if no process runs for an hour.
  engine.chore("sweep-pending-uploads", { everyMs: SWEEP_MS }, sweep);

  return {
    /**
     * Store bytes (`put`) and then their record (`keep`). `keep` receives the write that ends the pending upload, and must include it in its
     * commit. Its result is returned. If either fails, the bytes are removed and its error is passed on.
     */
    async store<T, R>(key: string, put: () => Promise<T>, keep: (stored: T, ends: ports.Write) => Promise<R>): Promise<R> {
      await pending.put(idOf(key), { key, pending: true, begunAt: clock.now() });
      try {
        return await keep(await put(), pending.write.remove(idOf(key)));
      } catch (error) {
        // A failed commit can still have taken effect. If its record exists, the bytes must stay.
        if (!(await isKept(key))) await undo(key);
        throw error;
      }
    },
  };

  /** The commit of `keep` removes the entry of the pending upload. If the store cannot be read, the sweep decides later. */
  async function isKept(key: string): Promise<boolean> {
    return pending.get(idOf(key)).then(
      (found) => found === undefined,
      () => true,
    );
  }

  async function undo(key: string): Promise<void> {
    try {
      await blobs.remove(key);
      await pending.remove(idOf(key));
    } catch (error) {
      log.warn("A refused upload could not be removed now; it will be removed later", {}, error);
    }
  }
}
