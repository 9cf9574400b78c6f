import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { type Listening, listen } from "./listen.ts";
import type { AgentEvent } from "./trigger-agent.ts";

/** A listener that replaces an agent service in this story, with the environment variables that forwarders need. */
export interface StandInTrigger extends Listening {
  readonly env: Readonly<Record<string, string>>;
}

/** Accepts every event, and prints its name with the mapped fields. */
export async function openStandInTrigger(): Promise<StandInTrigger> {
  const service = new H3().post("/api/webhook/:agentId", async ({ req, context }) => {
    const { event, payload } = (await req.json()) as AgentEvent;
    const { notification: _, ...mapped } = payload;
    console.log(`agent: ${event} ${JSON.stringify(mapped)}`);
    return { accepted: true, agentId: context.params?.["agentId"], event };
  });
  const listening = await listen(toNodeHandler(service));
  return {
    ...listening,
    env: { AGENT_TRIGGER_URL: `${listening.url}/api/webhook/helper`, AGENT_WEBHOOK_SECRET: "whs_a-secret-for-this-story" },
  };
}
