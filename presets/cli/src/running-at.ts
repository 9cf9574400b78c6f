import { withoutEnd } from "@portico/core";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { dataDirectory } from "./data-directory.ts";
import { isDataDirectoryLocked } from "./data-lock.ts";
import { readEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/**
 * The address of a surface of the running service: of the service that uses the data directory, or a cluster's `publicUrl`. Throws
 * CommandFailed (69) if no service runs, or its address is not known.
 */
export function runningAt(settings: PlatformSettings, surface: "agent" | "workflow"): string {
  const { dataDir } = settings;
  if (namesCluster(settings)) {
    const { publicUrl } = settings[surface];
    if (publicUrl !== undefined) return withoutEnd(publicUrl, "/");
    throw new CommandFailed(`The configuration has no ${surface}.publicUrl: give the address with --url`, EXIT.unavailable);
  }
  const directory = dataDirectory(dataDir);
  const url = isDataDirectoryLocked(directory) ? readEndpoints(directory)?.listeners[surface]?.url : undefined;
  if (url !== undefined) return url;
  throw new CommandFailed(
    `No ${surface} service runs with the data directory ${directory.path}: start it, or give its address with --url`,
    EXIT.unavailable,
  );
}

/** The address of option `--url`, without a slash at its end. Throws CommandFailed (64) for any other text. */
export function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return withoutEnd(text, "/");
  throw new CommandFailed("Option --url must be an http or https address", EXIT.usage);
}

/** A link that is relative to the agent service, as an address to open. `base` is the service's address, which may have a path. */
export function absoluteLink(base: string, link: string): string {
  return withoutEnd(base, "/") + link;
}
