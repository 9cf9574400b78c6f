import { readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import * as v from "valibot";
import type { DataDirectory } from "../platform/data-directory.ts";

const endpointsSchema = v.object({ pid: v.number(), listeners: v.record(v.string(), v.object({ url: v.string() })) });

/** Where a running service is to be found (open points 1). */
export type Endpoints = v.InferOutput<typeof endpointsSchema>;

/** Write the file whole or not at all, for its owner alone. */
export function writeEndpoints({ endpoints: path }: DataDirectory, endpoints: Endpoints): void {
  const temporary = `${path}.${endpoints.pid}`;
  // What a killed process of the same number left would keep its mode.
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${JSON.stringify(endpoints)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(temporary, path);
}

/** What the last service wrote; undefined where there is nothing that can be read. After a kill it is still there. */
export function readEndpoints({ endpoints: path }: DataDirectory): Endpoints | undefined {
  try {
    return v.parse(endpointsSchema, JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}

/** Remove the file if it is this process's own. Never throws: it is also called while the process exits. */
export function removeOwnEndpoints(directory: DataDirectory): void {
  if (readEndpoints(directory)?.pid !== process.pid) return;
  try {
    unlinkSync(directory.endpoints);
  } catch {
    // Somebody else was faster, or the directory is gone: then there is nothing left to remove.
  }
}
