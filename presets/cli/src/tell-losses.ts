import { readFileSync } from "node:fs";
import { type App, isStoreAway, ports } from "@portico/core";
import * as v from "valibot";
import type { DataDirectory } from "./data-directory.ts";

const SENTENCE =
  "The records store has lost its last writes: its files were deleted, damaged or replaced by older ones. " +
  "A record that is not found counts as unknown, not as absent, until its retention time has passed";

/** Warn about losses of the records store, once for each loss. Includes losses that a command noticed beside the service. */
export async function tellLosses(app: App, log: ports.Log): Promise<void> {
  const losses = app.port(ports.records).collection<ports.StoreLoss>({ name: ports.STORE_LOSSES });
  try {
    for (const { id, value, version } of (await losses.query({ limit: 1000 })).items) {
      if (value.isTold) continue;
      log.warn(SENTENCE, { from: value.from, to: value.to });
      await losses.put(id, { ...value, isTold: true }, version);
    }
  } catch (error) {
    // If the mark cannot be written, the next start warns again.
    if (!isStoreAway(error)) throw error;
  }
}

const schema = v.object({ createdAt: v.string(), version: v.string(), storeVersion: v.number() });

/** The backup that a data directory was restored from. */
export type RestoredFrom = v.InferOutput<typeof schema>;

/** Undefined for a directory that was not restored. */
export function readRestoredFrom({ origin }: DataDirectory): RestoredFrom | undefined {
  try {
    return v.parse(schema, JSON.parse(readFileSync(origin, "utf8")));
  } catch {
    return undefined;
  }
}
