import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type AgentClientOptions, connectAgent } from "@portico/client";
import type { App } from "@portico/core";
import type { Attachment } from "@portico/core/node";
import type { Desk } from "./desk.ts";

/** An application with mounted surfaces. Disposing closes the application first, then the app of the surfaces. */
export interface Host extends AsyncDisposable {
  /** Send a request to a path of the application. */
  call(path: string, init?: RequestInit): Promise<Response>;
  /** The address on which it listens; undefined if it does not listen. */
  readonly url?: string;
}

/** A host that mounts every surface of the desk under its name. If the host listens, it also serves the realtime channel. */
export interface EmbeddingStory extends Host {
  readonly tokens: Desk["tokens"];
}

/** Waits until a host on Node listens. To stop, it refuses new connections, ends WebSockets and event streams, and closes the app last. */
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
      // Clients keep idle connections, and Node waits some seconds for them. A production service would wait for running requests here.
      server.closeAllConnections();
      await closed;
      await app.close();
    },
  };
}

/** Call every part of the host once, and print the answers. */
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

/** Asks an agent, and returns its answer from the realtime channel. */
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
