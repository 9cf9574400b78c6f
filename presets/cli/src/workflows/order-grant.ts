import { parseDuration, ports } from "@portico/core";
import { GRANT_MS } from "@portico/plugins/workflow-service/grants";
import { definitionsInWords } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { type IssuedGrant, issueGrant } from "./issue-grant.ts";
import { readDefinitions } from "./read-definitions.ts";

/**
 * Issue the grant that a command line asks for. Warns about a workflow that is not deployed: it may be deployed before the grant is
 * used. Throws CommandFailed: 64 for an unknown binding or an invalid lifetime, 69 if no signing key exists.
 */
export async function orderGrant(
  flags: SettingsFlags,
  wanted: {
    readonly workflowId: string;
    readonly userId?: string | undefined;
    readonly bindingId?: string | undefined;
    readonly edits?: boolean | undefined;
    readonly ttl?: string | undefined;
  },
): Promise<{ readonly grant: IssuedGrant; readonly warning?: string }> {
  const { settings } = await readSettings(flags);
  const { workflowId, userId, bindingId } = wanted;
  const edits = wanted.edits ? true : undefined;
  checkBinding(settings, workflowId, bindingId);
  const grant = await issueGrant(settings, { workflowId, userId, bindingId, edits, ttlMs: readTtl(wanted.ttl) });
  // The workflow may be a new one.
  if (edits) return { grant };
  const place = definitionsInWords(settings);
  const deployed = await deployedIds(settings);
  if (deployed === undefined) return { grant, warning: `The definitions in ${place} cannot be read.` };
  if (deployed.includes(workflowId)) return { grant };
  return {
    grant,
    warning: `No usable definition in ${place} has the id "${workflowId}". The grant becomes usable when such a definition is deployed.`,
  };
}

/** Undefined if they cannot be read. */
async function deployedIds(settings: PlatformSettings): Promise<readonly string[] | undefined> {
  try {
    return (await readDefinitions(settings)).deployed;
  } catch (error) {
    if (error instanceof ports.DocumentsUnavailable) return undefined;
    throw error;
  }
}

/** A service with these settings would never accept such a grant. */
function checkBinding({ workflow }: PlatformSettings, workflowId: string, bindingId: string | undefined): void {
  if (bindingId === undefined || workflow.bindings.some((each) => each.id === bindingId && each.workflowId === workflowId))
    return;
  const known = workflow.bindings.filter((each) => each.workflowId === workflowId).map(({ id }) => id);
  throw new CommandFailed(
    `The workflow "${workflowId}" has no binding "${bindingId}" in the configuration; it has: ${known.join(", ") || "none"}`,
    EXIT.usage,
  );
}

function readTtl(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ttlMs = parseDuration(text);
  if (ttlMs !== undefined && ttlMs >= GRANT_MS.least && ttlMs <= GRANT_MS.most) return ttlMs;
  throw new CommandFailed("Option --ttl must be a duration from one second to 366 days, such as 90s, 10m, 2h or 1d", EXIT.usage);
}
