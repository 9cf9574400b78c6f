import { Secret } from "@portico/core";
import { caseFileOfTurns, NotRecordable, readRecordedRun } from "@portico/plugins/conversations-runs/case-of-run";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { caseFileText } from "../case-file-text.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { findAgentService } from "../running-agent-service.ts";

/** Shorter values occur by chance in ordinary text. */
const SHORTEST_SECRET = 8;

/**
 * The text of a file of cases that repeats the turns of a run. The secrets of the settings are masked, and credentials of the usual forms. Throws
 * CommandFailed: 1 if the run cannot be recorded, and the faults of `findAgentService`.
 */
export async function recordTurns(settings: PlatformSettings, runId: string, url: string | undefined): Promise<string> {
  const { client, answered } = await findAgentService(settings, conversationsRunsContract, url);
  const secrets = [...secretsIn(settings)].filter((secret) => secret.length >= SHORTEST_SECRET);
  // The longest first: one may be a part of another.
  secrets.sort((one, other) => other.length - one.length);
  const file = await answered(async (signal) => {
    try {
      return caseFileOfTurns(await readRecordedRun(client, runId, signal), secrets);
    } catch (error) {
      if (error instanceof NotRecordable) throw new CommandFailed(`The run ${runId}: ${error.message}`, EXIT.failed, error);
      throw error;
    }
  });
  return caseFileText(file);
}

function* secretsIn(value: unknown): Generator<string> {
  if (value instanceof Secret) yield value.reveal();
  else if (typeof value === "object" && value !== null) for (const each of Object.values(value)) yield* secretsIn(each);
}
