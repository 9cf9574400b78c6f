import { connectAgent } from "@portico/client";

const { AGENT = "", AGENT_TOKEN = "" } = process.env;
await using client = connectAgent({ baseURL: AGENT, token: AGENT_TOKEN });

const query = client.submit({ agentId: "boss", prompt: "Use DelegateToAgent" });
for await (const message of query) {
  if (message.type !== "approval") continue;
  const { name, status } = message.content;
  console.log(`${name} is ${status}`);
}
console.log((await query.ended).status);
