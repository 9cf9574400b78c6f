import { connectAgent } from "@portico/client";

const { AGENT = "", AGENT_TOKEN = "" } = process.env;
await using client = connectAgent({ baseURL: AGENT, token: AGENT_TOKEN });

const query = client.submit({ agentId: "helper", prompt: "Hello" });
for await (const { delta } of query) process.stdout.write(delta ?? "");
console.log(`\n${(await query.ended).status}`);
