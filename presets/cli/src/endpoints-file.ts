import { record } from "@portico/core";
import { readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import * as v from "valibot";
import type { DataDirectory } from "./data-directory.ts";

const endpointsSchema = v.object({ pid: v.number(), listeners: record(v.string(), v.object({ url: v.string() })) });

/** The addresses of a running service (open points 1). */
export type Endpoints = v.InferOutput<typeof endpointsSchema>;

/** Write the file atomically, readable only by its owner. */
export function writeEndpoints({ endpoints: path }: DataDirectory, endpoints: Endpoints): void {
  const temporary = `${path}.${endpoints.pid}`;
  // A leftover of a killed process with the same id would keep its file mode.
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${JSON.stringify(endpoints)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(temporary, path);
}

/** The file of the last service. Undefined if no readable file exists. The file stays after a kill. */
export function readEndpoints({ endpoints: path }: DataDirectory): Endpoints | undefined {
  try {
    return v.parse(endpointsSchema, JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}

/** Remove the file if this process wrote it. Never throws, because it is also called while the process exits. */
export function removeOwnEndpoints(directory: DataDirectory): void {
  if (readEndpoints(directory)?.pid !== process.pid) return;
  try {
    unlinkSync(directory.endpoints);
  } catch {
    // The file or its directory is already removed.
  }
}
