import { randomUUID } from "node:crypto";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import type { CallResult } from "@portico/core/client";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { findAgentService } from "./running-agent-service.ts";
import { shellWord } from "./terminal.ts";

/** The longest wait of one call. Until the turn has ended, the question is sent again under its id. */
const WAIT_S = 25;
/** Between two calls: a service that stops answers at once. */
const PAUSE_MS = 200;

type Answer = CallResult<typeof conversationsRunsContract.ask>;

/**
 * What the agent says, once its turn has ended. Throws CommandFailed: 1 if the turn failed, was stopped, or waits for a person, and the faults of
 * `findAgentService`.
 */
export async function askAgent(
  settings: PlatformSettings,
  {
    agent,
    prompt,
    conversation,
    url,
  }: { agent: string; prompt: string; conversation: string | undefined; url: string | undefined },
): Promise<Answer> {
  const body = {
    prompt: prompt === "-" ? await text(process.stdin) : prompt,
    clientRequestId: randomUUID(),
    ...(conversation !== undefined && { conversationId: conversation }),
  };
  const { client, answered } = await findAgentService(settings, conversationsRunsContract, url);
  const headers = { prefer: `wait=${WAIT_S}` };
  for (;;) {
    const answer = await answered((signal) => client.ask({ params: { id: agent }, body, headers, signal }), 2 * WAIT_S * 1000);
    if (answer.status === "completed") return answer;
    if (answer.status !== "started") throw new CommandFailed(wordsOf(answer), EXIT.failed);
    await setTimeout(PAUSE_MS);
  }
}

function wordsOf({ status, runId, reason, error }: Answer): string {
  if (status === "failed") return `The turn failed: ${error?.message} (${error?.code}, run ${runId})`;
  if (status === "waiting")
    return `The agent waits until a person has decided about a call of a tool: see \`portico approvals list\`. Its run is ${shellWord(runId)}`;
  return `The turn was stopped: ${reason ?? status} (run ${runId})`;
}
