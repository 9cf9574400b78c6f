import { X509Certificate } from "node:crypto";
import { createServer } from "node:net";
import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../data-directory.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { readEndpoints } from "../endpoints-file.ts";
import { CommandFailed } from "../exit-codes.ts";
import { readHttps } from "../certificate.ts";
import { addressesOf } from "../preset-table.ts";
import { doubtful, type Finding, fine, wrong } from "./finding.ts";

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

const HTTPS = "https";
const SOON_MS = 14 * 24 * 60 * 60_000;

/** Checks that the certificate of the listeners is usable, and how long it is valid. No findings if HTTPS is off. */
export function checkHttps(settings: PlatformSettings, directory: DataDirectory): readonly Finding[] {
  try {
    const https = readHttps(settings, directory, Object.values(addressesOf(settings)));
    if (!https) return [];
    if (!https.certificate) return [fine(HTTPS, "the next start creates a self-signed certificate")];
    const { validTo } = new X509Certificate(https.certificate.cert);
    const message = `the certificate in ${https.file} is valid until ${validTo}`;
    const leftMs = Date.parse(validTo) - Date.now();
    if (leftMs > SOON_MS) return [fine(HTTPS, message)];
    return [
      leftMs > 0 ? doubtful(HTTPS, message) : wrong(HTTPS, `the certificate in ${https.file} expired on ${validTo}`, "renew it"),
    ];
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return [wrong(HTTPS, error.message, "correct https.cert and https.key, or omit both to use a self-signed certificate")];
  }
}

/** Tries to listen at an address. Returns undefined if that works, else the system's error code. */
export function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.name));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
