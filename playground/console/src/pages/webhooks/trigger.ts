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

/** Send a trigger as an external system does: with its own credential and without the session's, which a refusal must not end. */
export async function sendTrigger(
  { baseURL, agentId, secret }: { readonly baseURL: string; readonly agentId: string; readonly secret: string },
  body: Trigger,
  signal: AbortSignal,
): Promise<void> {
  const sender = createClient(agentWebhookContract, { baseURL, headers: { authorization: `Bearer ${secret}` } });
  await sender.trigger({ params: { agent_id: agentId }, body, signal });
}

/** Why a trigger was refused, with what a sender would have to do. */
export function describeRefusal(error: unknown): string {
  const told = describeFailure(error);
  if (!CallFailed.is(error)) return told;
  switch (error.status) {
    case 401:
      return `${told}. Nothing was accepted: the secret is another by now, or was copied in part.`;
    case 403:
      return "A remote instance takes no trigger for an agent without a secret. Save an event, or make a secret above.";
    case 404:
      return `${told}. Nothing was accepted: enable the endpoint above.`;
    case 500:
      return `${told}. Nothing was accepted: mend the agent’s file.`;
    case 503:
      return `${told}. Sent again it may run twice.`;
    default:
      return told;
  }
}

/** The very request, for a shell. */
export function toCurl(url: string, secret: string, body: Trigger): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl -X POST ${quoted(url)}`,
    `  -H ${quoted(`Authorization: Bearer ${secret}`)}`,
    `  -H ${quoted("Content-Type: application/json")}`,
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n");
}
