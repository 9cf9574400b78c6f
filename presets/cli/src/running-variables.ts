import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { dataDirectory } from "./data-directory.ts";
import { isDataDirectoryLocked } from "./data-lock.ts";
import { readEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { instanceToken, workflowToken } from "./workflows/issue-grant.ts";

/**
 * The addresses of the running service's listeners, by variable: `PROXY` (without `/v1`), `WORKFLOW`, `AGENT`, and further surfaces by their names; and
 * `AGENT_TOKEN` and `WORKFLOW_TOKEN` for the first two services that have one. Throws CommandFailed (69) if no service runs.
 */
export async function readVariables(flags: SettingsFlags): Promise<Readonly<Record<string, string>>> {
  const { settings } = await readSettings(flags);
  const urls = namesCluster(settings) ? publicUrls(settings) : runningUrls(settings);
  return {
    ...Object.fromEntries(Object.entries(urls).map(([surface, url]) => [variable(surface), address(url)])),
    ...(urls["agent"] !== undefined && { AGENT_TOKEN: (await instanceToken(settings)).reveal() }),
    ...(urls["workflow"] !== undefined && { WORKFLOW_TOKEN: (await workflowToken(settings)).reveal() }),
  };
}

function runningUrls({ dataDir }: PlatformSettings): Readonly<Record<string, string>> {
  const directory = dataDirectory(dataDir);
  const listeners = isDataDirectoryLocked(directory) ? readEndpoints(directory)?.listeners : undefined;
  if (listeners) return Object.fromEntries(Object.entries(listeners).map(([surface, { url }]) => [surface, url]));
  throw new CommandFailed(`No service runs with the data directory ${directory.path}: start it first`, EXIT.unavailable);
}

function publicUrls({ proxy, workflow, agent }: PlatformSettings): Readonly<Record<string, string>> {
  const known = Object.entries({ proxy, workflow, agent }).flatMap(([surface, { publicUrl }]) =>
    publicUrl === undefined ? [] : [[surface, publicUrl] as const],
  );
  if (known.length > 0) return Object.fromEntries(known);
  throw new CommandFailed("The configuration has no publicUrl of a service", EXIT.unavailable);
}

function variable(surface: string): string {
  return surface.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_");
}

/** Pages and clients add `/v1` to the proxy's address themselves. */
function address(url: string): string {
  return url.replace(/(?:\/v1)?\/?$/, "");
}
