import { GRANT_MS } from "@portico/plugins/workflow-service/limits";
import { parseDuration } from "@portico/plugins/workflow-service/parse-duration";
import type { PlatformSettings } from "../../settings/platform.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { type IssuedGrant, issueGrant } from "./issue-grant.ts";
import { readDefinitions } from "./read-definitions.ts";

/**
 * Issue the grant that a command line asks for. The warning is for a workflow that is not deployed: it may be by the time that the grant is
 * used. Throws CommandFailed: 64 for a binding or a lifetime that is none, 69 where there is no key to sign with.
 */
export async function orderGrant(
  flags: SettingsFlags,
  wanted: {
    readonly workflowId: string;
    readonly userId?: string | undefined;
    readonly bindingId?: string | undefined;
    readonly ttl?: string | undefined;
  },
): Promise<{ readonly grant: IssuedGrant; readonly warning?: string }> {
  const { settings } = await readSettings(flags);
  const { workflowId, userId, bindingId } = wanted;
  checkBinding(settings, workflowId, bindingId);
  const grant = await issueGrant(settings, { workflowId, userId, bindingId, ttlMs: readTtl(wanted.ttl) });
  const { deployed } = await readDefinitions(settings);
  if (deployed.includes(workflowId)) return { grant };
  const { definitionsDir } = settings.workflow;
  return {
    grant,
    warning: `No usable definition in ${definitionsDir} has the id "${workflowId}"; the grant is good once one has.`,
  };
}

/** No service with these settings would ever take it. */
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
  throw new CommandFailed("Option --ttl is a duration of one second to 366 days, such as 90s, 10m, 2h or 1d", EXIT.usage);
}
