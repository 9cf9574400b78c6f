/**
 * An embedding host, on the runtime that runs this file. Prints the answers of the host's parts. Its argument is the base URL of an
 * upstream that speaks both protocols.
 */
import { systemClock } from "@portico/adapters/clock/system";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { createApp, ports } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { testing } from "@portico/presets/testing";
import * as crossws from "../../playground/embed-crossws.ts";
import * as express from "../../playground/embed-express.ts";
import * as plainFetch from "../../playground/embed-fetch.ts";
import * as hono from "../../playground/embed-hono.ts";
import { type EmbeddingStory, tell } from "../../playground/embedding-story.ts";

const [baseUrl = ""] = process.argv.slice(2);

for (const [name, { start }] of Object.entries({ fetch: plainFetch, hono, express, crossws })) {
  say(`# ${name}`);
  await using story = await start();
  await tell(story, name === "crossws" ? "websocket" : undefined);
  say(`events: ${await watch(story)}`);
}
for (const [name, given] of Object.entries({ undici: {}, fetch: { fetch } })) {
  say(`# model calls with ${name}: ${await converse(given)}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The name of an event that comes while its stream is open. The note that causes it is larger than a chunk of the network. */
async function watch({ call, tokens }: EmbeddingStory): Promise<string> {
  const headers = { authorization: `Bearer ${tokens.notebook}`, "content-type": "application/json" };
  const reader = (await call("/notebook/events", { headers })).body!.getReader();
  const body = JSON.stringify({ title: "long", text: "é".repeat(50_000) });
  const written = call("/notebook/notes", { method: "POST", headers, body });
  let text = "";
  while (!text.includes("data:")) text += new TextDecoder().decode((await reader.read()).value);
  await reader.cancel();
  return `${(await written).status}, ${/^event: (.*)$/m.exec(text)?.[1]}`;
}

/** A streamed call of Chat Completions to an upstream that speaks Messages. */
async function converse(given: { readonly fetch?: typeof fetch }): Promise<string> {
  const upstream = messagesHttp({ id: "main", type: "test", baseUrl, models: ["echo-large"], ...given });
  const app = await createApp({
    name: "proxy",
    extends: testing({}),
    adapters: [systemClock(), upstream],
    plugins: [modelProxy({})],
  });
  const [records, secrets, clock, ids] = [ports.records, ports.secrets, ports.clock, ports.ids].map((port) =>
    app.port<any>(port),
  );
  const { token } = await createSafeTokens({ records, secrets, clock, ids }).issue({ providerId: "main" });
  const answer = await app.surface("proxy").fetch(
    new Request("http://host.local/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${token.reveal()}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "echo-large", stream: true, messages: [{ role: "user", content: "Hello there" }] }),
    }),
  );
  const chunks = (await answer.text()).split("\n\n").filter((event) => event.startsWith("data: {"));
  await app.close();
  return chunks.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? "").join("");
}
