import { CallFailed } from "@portico/core/client";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { findAgentService } from "./running-agent-service.ts";

/**
 * What agents remember of the user of the instance access token, in the agent service that uses the data directory, or in the service at another
 * address. The functions throw CommandFailed: 1 with the service's own message if it refuses, 69 if it cannot be reached.
 */
export async function findMemory(settings: PlatformSettings, given: string | undefined) {
  const { client, answered } = await findAgentService(settings, conversationsRunsContract, given);
  return {
    agents: () => answered(async (signal) => (await client.memories({ signal })).memories),
    documents: (id: string) => answered(async (signal) => (await client.memory({ params: { id }, signal })).documents),
    read: (id: string, name: string) => answered((signal) => client.readMemory({ params: { id, name }, signal })),
    /** Creates the document, or replaces its text as it is now. A change at the same moment makes it fail. */
    write: (id: string, name: string, text: string) =>
      answered(async (signal) => {
        const params = { id, name };
        const before = await client.readMemory({ params, signal }).catch(undefinedIfMissing);
        const headers: Record<string, string> = before ? { "if-match": before.etag } : { "if-none-match": "*" };
        return client.writeMemory({ params, body: { text }, headers, signal });
      }),
    /** Erases a document or, without a name, all. Returns how many. */
    erase: (id: string, name: string | undefined) =>
      answered(async (signal) => {
        if (name === undefined) return (await client.eraseMemory({ params: { id }, signal })).erased;
        await client.eraseMemoryDocument({ params: { id, name }, signal });
        return 1;
      }),
  };
}

function undefinedIfMissing(error: unknown): undefined {
  if (!CallFailed.is(error) || error.status !== 404) throw error;
}
