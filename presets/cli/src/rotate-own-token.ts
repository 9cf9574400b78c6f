import { existsSync } from "node:fs";
import { ports } from "@portico/core";
import { replaceOwnToken, type TokenOf } from "@portico/presets/platform/own-token";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import { dataDirectory } from "./data-directory.ts";
import { commandActor } from "./command-actor.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { storesElsewhere } from "./instance-stores.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { withStores } from "./store-app.ts";

/**
 * Replaces the token that an instance created for one of its services. Returns the new one. A running service reads it by itself. Throws
 * CommandFailed: 64 for another service, or if a setting gives the token; 1 if the instance has created none yet.
 */
export async function rotateOwnToken(flags: SettingsFlags, service: string): Promise<string> {
  if (service !== "agent" && service !== "workflow")
    throw new CommandFailed(`There is no service "${service}" with a token: agent, workflow`, EXIT.usage);
  const { settings } = await readSettings(flags);
  const setting = givenBy(settings, service);
  if (setting !== undefined)
    throw new CommandFailed(
      `The setting ${setting} gives this token: change it there, and send SIGHUP to the service`,
      EXIT.usage,
    );
  const directory = dataDirectory(settings.dataDir);
  if (storesElsewhere(settings, [ports.secrets]).length === 0 && !existsSync(directory.credentials))
    throw new CommandFailed("The instance has created no token yet: its first start does", EXIT.failed);
  return withStores(settings, { needed: [ports.records, ports.secrets] }, async (app) => {
    const fact = { action: "instance-token.rotate", object: service, who: commandActor() };
    const token = await app.port(ports.audit).attempt(fact, () => replaceOwnToken(app.port(ports.secrets), service));
    return token.reveal();
  });
}

/** The setting that gives the token of a service. In a cluster, settings give all tokens. */
function givenBy(settings: Awaited<ReturnType<typeof readSettings>>["settings"], service: TokenOf): string | undefined {
  if (service === "workflow") return settings.workflow.token || namesCluster(settings) ? "workflow.token" : undefined;
  return settings.agent.tokens.some(({ role }) => role === "owner") || namesCluster(settings) ? "agent.tokens" : undefined;
}
