import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../data-directory.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { readEndpoints } from "../endpoints-file.ts";
import { addressesOf } from "../preset-table.ts";
import { type Finding, fine, wrong } from "./finding.ts";
import { tryListen } from "./try-listen.ts";

/** Checks that every fixed port is free, or used by this instance itself. */
export async function checkPorts(settings: PlatformSettings, directory: DataDirectory): Promise<readonly Finding[]> {
  const isRunning = isDataDirectoryLocked(directory);
  const own = isRunning
    ? Object.values(readEndpoints(directory)?.listeners ?? {}).map(({ url }) => Number(new URL(url).port))
    : [];
  const findings = await Promise.all(
    Object.entries(addressesOf(settings)).map(([surface, listen]) => checkPort(surface, listen, own)),
  );
  return [...(isRunning ? [fine("service", "running on this data directory")] : []), ...findings.flat()];
}

async function checkPort(area: string, { host, port }: ListenAddress, own: readonly number[]): Promise<readonly Finding[]> {
  const about = `port of ${area}`;
  // Any port fits: if the one of earlier starts is in use, a start chooses another one.
  if (port === undefined || port === 0) return [];
  if (own.includes(port)) return [fine(about, `${port} is in use by this instance's own service`)];
  const failure = await tryListen(host, port);
  if (failure === undefined) return [fine(about, `${port} on ${host} is free`)];
  const message =
    failure === "EADDRINUSE" ? `${port} on ${host} is already in use` : `cannot listen on ${host} port ${port} (${failure})`;
  return [
    wrong(
      about,
      message,
      `lsof -i :${port} names the program that uses it: stop it, or set ${area}.listen to another address (with port 0 the system chooses a port)`,
    ),
  ];
}
