import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type AgentClientOptions, connectAgent } from "@portico/client";
import type { App } from "@portico/core";
import type { Attachment } from "@portico/core/node";
import type { Desk } from "./desk.ts";

/** An application that has mounted surfaces. Disposing closes it, then the app of the surfaces. */
export interface Host extends AsyncDisposable {
  /** Call it by a path. */
  call(path: string, init?: RequestInit): Promise<Response>;
  /** Where it listens; undefined where it does not. */
  readonly url?: string;
}

/** A host with every surface of the desk under its name, and with the realtime channel where it listens. */
export interface EmbeddingStory extends Host {
  readonly tokens: Desk["tokens"];
}

/** A host on Node, when it listens. It is stopped in order: nothing new comes, what would never end is ended, and the app goes last. */
export async function listening(app: App, server: Server, attached: Attachment): Promise<Host & { readonly url: string }> {
  if (!server.listening) await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    call: (path, init) => fetch(url + path, init),
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      attached.close();
      // Clients keep connections for their next request: Node gives them some seconds. A service waits here for what is in flight.
      server.closeAllConnections();
      await closed;
      await app.close();
    },
  };
}

/** Call every part of the host once, and print what it says. */
export async function tell({ call, url, tokens }: EmbeddingStory, realtime?: AgentClientOptions["realtime"]): Promise<void> {
  console.log(`host: ${await (await call("/")).text()}`);
  const answer = await call("/proxy/v1/messages", {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": tokens.proxy },
    body: JSON.stringify({ model: "demo", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] }),
  });
  const { content } = (await answer.json()) as { content: { text: string }[] };
  console.log(`proxy: ${content[0]?.text}`);
  const list = await call("/notebook/notes", { headers: { authorization: `Bearer ${tokens.notebook}` } });
  console.log(`notebook: ${await list.text()}`);
  if (url !== undefined) console.log(`agent: ${await ask(`${url}/agent`, { token: tokens.agent, agentId: "echo", realtime })}`);
}

/** What an agent answers over the realtime channel. */
export async function ask(
  baseURL: string,
  {
    agentId,
    ...options
  }: { readonly agentId: string; readonly token: string; readonly realtime?: AgentClientOptions["realtime"] | undefined },
) {
  await using client = connectAgent({ baseURL, ...options });
  const { result } = (await client.submit({ agentId, prompt: "Hello" }).ended) as { result?: { output: string } };
  return result?.output;
}
