import type { ports } from "@portico/core";
import { ABANDONED_MS } from "./limits.ts";

/** An upload that has started, but was not confirmed to the caller yet. */
interface PendingUpload {
  readonly key: string;
  readonly pending: true;
  /** Milliseconds since 1970. */
  readonly begunAt: number;
}

const SWEEP_MS = 60 * 60_000;
const PAGE = 200;

/**
 * Remembers which bytes are being stored. They and what is known of them cannot be written in one commit: what a process that died in
 * between has stored is found here, and taken away.
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
  // At once too: a process that never lives for an hour leaves nothing behind either.
  engine.chore("sweep-pending-uploads", { everyMs: SWEEP_MS }, sweep);

  return {
    /**
     * Store bytes and then what is known of them: `keep` gets the write that ends the upload, for its own commit, and answers what this
     * answers. Where either fails, nothing stays. Rejects with what either rejects with.
     */
    async store<T, R>(key: string, put: () => Promise<T>, keep: (stored: T, ends: ports.Write) => Promise<R>): Promise<R> {
      await pending.put(idOf(key), { key, pending: true, begunAt: clock.now() });
      try {
        return await keep(await put(), pending.write.remove(idOf(key)));
      } catch (error) {
        // Whether a commit took effect can be unknown: what it wrote then says so, and the bytes stay.
        if (!(await isKept(key))) await undo(key);
        throw error;
      }
    },
  };

  /** The record of the pending upload goes in the commit that keeps it. Unreadable stores leave everything to the sweep. */
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
