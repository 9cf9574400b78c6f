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

/** What an agent is asked, and where. */
interface Question {
  readonly agent: string;
  readonly prompt: string | undefined;
  readonly conversation: string | undefined;
  /** A message of the conversation, or `last`. */
  readonly replace: string | undefined;
  readonly regenerate: string | undefined;
  readonly url: string | undefined;
}

/**
 * What the agent says, once its turn has ended. Throws CommandFailed: 64 for a question that lacks a part, 1 if the turn failed, was stopped, or waits
 * for a person, and the faults of `findAgentService`.
 */
export async function askAgent(settings: PlatformSettings, question: Question): Promise<Answer> {
  const { agent, prompt, conversation, replace, regenerate, url } = question;
  checkQuestion(question);
  const { client, answered } = await findAgentService(settings, conversationsRunsContract, url);
  const idOf = async (wanted: string, role: "user" | "assistant") =>
    wanted === LAST ? newestOf(role, await answered((signal) => client.messages(newestMessages(conversation!, signal)))) : wanted;
  const body = {
    clientRequestId: randomUUID(),
    ...(prompt !== undefined && { prompt: prompt === "-" ? await text(process.stdin) : prompt }),
    ...(conversation !== undefined && { conversationId: conversation }),
    ...(replace !== undefined && { replaces: await idOf(replace, "user") }),
    ...(regenerate !== undefined && { regenerates: await idOf(regenerate, "assistant") }),
  };
  const headers = { prefer: `wait=${WAIT_S}` };
  for (;;) {
    const answer = await answered((signal) => client.ask({ params: { id: agent }, body, headers, signal }), 2 * WAIT_S * 1000);
    if (answer.status === "completed") return answer;
    if (answer.status !== "started") throw new CommandFailed(wordsOf(answer), EXIT.failed);
    await setTimeout(PAUSE_MS);
  }
}

const LAST = "last";

function checkQuestion({ prompt, conversation, replace, regenerate }: Question): void {
  const fault =
    replace !== undefined && regenerate !== undefined
      ? "Use --replace or --regenerate, not both"
      : (replace ?? regenerate) !== undefined && conversation === undefined
        ? "--replace and --regenerate need --conversation"
        : regenerate !== undefined && prompt !== undefined
          ? "--regenerate takes no text: the agent answers the same message again"
          : regenerate === undefined && prompt === undefined
            ? "Give the text to ask"
            : undefined;
  if (fault !== undefined) throw new CommandFailed(fault, EXIT.usage);
}

const newestMessages = (id: string, signal: AbortSignal) => ({ params: { id }, query: { limit: "200" }, signal });

/** A summary is not an answer. */
function newestOf(role: "user" | "assistant", { messages }: CallResult<typeof conversationsRunsContract.messages>): string {
  const isSummary = ([part]: readonly unknown[]) => (part as { readonly type?: unknown } | undefined)?.type === "summary";
  const found = messages.findLast((message) => message.role === role && !isSummary(message.parts));
  if (!found) throw new CommandFailed("The conversation has no such message", EXIT.failed);
  return found.id;
}

function wordsOf({ status, runId, reason, error }: Answer): string {
  if (status === "failed") return `The turn failed: ${error?.message} (${error?.code}, run ${runId})`;
  if (status === "waiting")
    return `The agent waits until a person has decided about a call of a tool: see \`portico approvals list\`. Its run is ${shellWord(runId)}`;
  return `The turn was stopped: ${reason ?? status} (run ${runId})`;
}
