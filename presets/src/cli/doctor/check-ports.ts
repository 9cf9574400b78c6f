import { createServer } from "node:net";
import type { DataDirectory } from "../../platform/data-directory.ts";
import type { ListenAddress } from "../../settings/listen.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { readEndpoints } from "../endpoints-file.ts";
import { type Finding, fine, wrong } from "./finding.ts";

/** Whether every fixed port is free, or this instance's own. */
export async function checkPorts(settings: PlatformSettings, directory: DataDirectory): Promise<readonly Finding[]> {
  const isRunning = isDataDirectoryLocked(directory);
  const own = isRunning
    ? Object.values(readEndpoints(directory)?.listeners ?? {}).map(({ url }) => Number(new URL(url).port))
    : [];
  const areas = Object.entries({ proxy: settings.proxy, workflow: settings.workflow, agent: settings.agent });
  const findings = await Promise.all(areas.map(([area, { listen }]) => checkPort(area, listen, own)));
  return [...(isRunning ? [fine("service", "running on this data directory")] : []), ...findings.flat()];
}

async function checkPort(area: string, { host, port }: ListenAddress, own: readonly number[]): Promise<readonly Finding[]> {
  const about = `port of ${area}`;
  if (port === 0) return [];
  if (own.includes(port)) return [fine(about, `${port} is held by this instance's own service`)];
  const failure = await tryListen(host, port);
  if (failure === undefined) return [fine(about, `${port} on ${host} is free`)];
  const message = failure === "EADDRINUSE" ? `${port} on ${host} is taken` : `cannot listen on ${host} port ${port} (${failure})`;
  return [
    wrong(
      about,
      message,
      `stop the program that has it, or set ${area}.listen to something else (port 0 lets the system choose)`,
    ),
  ];
}

function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.name));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
