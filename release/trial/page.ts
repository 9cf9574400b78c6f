import { connectAgent } from "@portico/client";

export async function ask(baseURL: string, token: string, prompt: string): Promise<string> {
  await using client = connectAgent({ baseURL, token, transports: ["websocket"] });
  let text = "";
  for await (const { delta } of client.submit({ agentId: "helper", prompt })) text += delta ?? "";
  return text;
}
