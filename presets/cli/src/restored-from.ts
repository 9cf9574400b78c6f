import { readFileSync } from "node:fs";
import * as v from "valibot";
import type { DataDirectory } from "./data-directory.ts";

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
