import { VERSION } from "@portico/presets/platform/version";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { ReadSettings } from "./read-settings.ts";
import type { StartablePreset } from "./startable-preset.ts";
import { serve, type Service } from "./serve.ts";
import { tellServiceManager } from "./tell-service-manager.ts";
import { welcome } from "./welcome.ts";

export interface RunServiceOptions {
  /** Write one line of JSON to standard output when everything listens, and nothing else (open points 1). */
  readonly json: boolean;
}

/** Run a preset until SIGTERM or SIGINT, print where it listens, and end the process. Throws the errors of `serve`. */
export async function runService<T extends PlatformSettings>(
  preset: StartablePreset<T>,
  read: () => Promise<Pick<ReadSettings<T>, "settings" | "listing" | "secretFiles">>,
  { json }: RunServiceOptions,
): Promise<never> {
  const exitCode = await serve(preset, read, async (service) => {
    const { urls, madeTokens, directory } = service;
    const listeners = Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url }]));
    // Links and tokens are printed only on a terminal, because a log file would keep them.
    const link = json || !process.stdout.isTTY ? undefined : await linkOf(service);
    process.stdout.write(
      json ? `${JSON.stringify({ event: "ready", pid: process.pid, listeners })}\n` : welcome(service, VERSION, link),
    );
    tellServiceManager((reason) => console.error(`systemd was not told that the service is ready: ${reason}`));
    if (!process.stderr.isTTY) return;
    for (const { of, token } of madeTokens) {
      const name = of === "agent" ? "Agent service token" : "Workflow service token";
      process.stderr.write(`${name}, shown only once (stored in ${directory.credentials}): ${token.reveal()}\n`);
    }
  });
  process.exit(exitCode);
}

/** The service runs without a link, too: `portico console` makes another one. */
async function linkOf({ signInLink }: Service): Promise<string | undefined> {
  try {
    return await signInLink?.();
  } catch {
    return undefined;
  }
}
