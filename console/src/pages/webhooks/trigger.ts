import { CallFailed, createClient } from "@portico/core/client";
import { agentWebhookContract } from "@portico/plugins/agent-webhook/contract";
import { describeFailure } from "../../api/describe-failure.ts";

export interface Trigger {
  readonly event: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

export function triggerUrl(baseURL: string, agentId: string): string {
  return `${baseURL}/api/webhook/${encodeURIComponent(agentId)}`;
}

/** Send a trigger like an external system: with the webhook's credential, not the session's, because a refusal must not end the session. */
export async function sendTrigger(
  { baseURL, agentId, secret }: { readonly baseURL: string; readonly agentId: string; readonly secret: string },
  body: Trigger,
  signal: AbortSignal,
): Promise<void> {
  const sender = createClient(agentWebhookContract, { baseURL, headers: { authorization: `Bearer ${secret}` } });
  await sender.trigger({ params: { agent_id: agentId }, body, signal });
}

/** Why a trigger was refused, and what a sender has to do. */
export function describeRefusal(error: unknown): string {
  const told = describeFailure(error);
  if (!CallFailed.is(error)) return told;
  switch (error.status) {
    case 401:
      return `${told}. The trigger was not accepted: the secret has changed, or was not copied completely.`;
    case 403:
      return "A remote instance accepts no triggers for an agent without a secret. Save an event, or create a secret above.";
    case 404:
      return `${told}. The trigger was not accepted: enable the endpoint above.`;
    case 500:
      return `${told}. The trigger was not accepted: correct the agent’s file.`;
    case 503:
      return `${told}. If you send it again, it may run twice.`;
    default:
      return told;
  }
}

/** The same request as a shell command. */
export function toCurl(url: string, secret: string, body: Trigger): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl -X POST ${quoted(url)}`,
    `  -H ${quoted(`Authorization: Bearer ${secret}`)}`,
    `  -H ${quoted("Content-Type: application/json")}`,
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n");
}
