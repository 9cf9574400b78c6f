import { readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { record } from "@portico/core";
import type { ListenAddress } from "@portico/presets/settings/listen";
import * as v from "valibot";
import type { DataDirectory } from "./data-directory.ts";

const endpointsSchema = v.object({ pid: v.number(), listeners: record(v.string(), v.object({ url: v.string() })) });

/** The addresses of a running service (open points 1). */
type Endpoints = v.InferOutput<typeof endpointsSchema>;

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

const portsSchema = record(v.string(), v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65535)));

/** Surface name to port. */
type Ports = v.InferOutput<typeof portsSchema>;

/** The ports that the system chose at earlier starts. Empty if no readable file exists. */
export function readPorts({ ports }: DataDirectory): Ports {
  try {
    return v.parse(portsSchema, JSON.parse(readFileSync(ports, "utf8")));
  } catch {
    return {};
  }
}

/**
 * Keep the ports that the system chose for addresses without a port, so that bookmarks and base URLs stay valid. A port that is kept already stays,
 * also if this start could not use it: the program that uses it now may be gone at the next start.
 */
export function rememberPorts(
  directory: DataDirectory,
  earlier: Ports,
  addresses: Readonly<Record<string, ListenAddress>>,
  urls: Readonly<Record<string, string>>,
): void {
  const chosen = Object.entries(urls).filter(([surface]) => addresses[surface]?.port === undefined && !earlier[surface]);
  if (chosen.length === 0) return;
  const ports = { ...earlier, ...Object.fromEntries(chosen.map(([surface, url]) => [surface, Number(new URL(url).port)])) };
  const temporary = `${directory.ports}.new`;
  writeFileSync(temporary, `${JSON.stringify(ports)}\n`, { mode: 0o600 });
  renameSync(temporary, directory.ports);
}
