// Saves an event of the agent `helper`, and prints the results that the agent delivered.
import { createClient } from "@portico/core/client";
import { agentWebhookContract } from "@portico/plugins/agent-webhook/contract";

const { AGENT = "", AGENT_TOKEN = "" } = process.env;
const promptTemplate = "Version {{version}} was deployed. Tell us with SendUserMessage.";

const webhooks = createClient(agentWebhookContract, { baseURL: AGENT, headers: { "x-agent-service-token": AGENT_TOKEN } });
await webhooks.saveEvent({ params: { id: "helper", event: "deploy" }, body: { promptTemplate, toolIds: ["SendUserMessage"] } });
const { items } = await webhooks.scheduleMessages({ params: { id: "helper" }, query: { limit: "10" } });
for (const { displayName, delivery } of items) console.log(displayName, delivery.message);
