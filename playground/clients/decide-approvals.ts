import { connectAgent } from "@portico/client";

const { AGENT = "", AGENT_TOKEN = "" } = process.env;
await using client = connectAgent({ baseURL: AGENT, token: AGENT_TOKEN });

for await (const approval of client.waitingApprovals()) {
  console.log(`${approval.agentId} calls ${approval.toolName} with ${JSON.stringify(approval.arguments)}`);
  const isHarmless = approval.riskLevel === "low" || approval.riskLevel === "medium";
  if (isHarmless) await client.decideApproval(approval, { decision: "approve", standing: true });
  else await client.decideApproval(approval, { decision: "reject", comment: "Ask an owner first." });
}
for (const { id, agentId, toolId } of await client.toolConsents()) console.log(`${agentId} may use ${toolId}: ${id}`);
