import { CallFailed, type CallResult, type Client, createClient } from "@portico/core/client";
import type { Contract } from "@portico/core/contract";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { listenersContract } from "portico/listeners-contract";
import { createContext } from "svelte";
import { ModelProxy } from "./model-proxy.ts";
import { type UploadRequest, upload } from "./upload.ts";
import { WorkflowService } from "./workflow-service.svelte.ts";

export type Handshake = CallResult<typeof conversationsRunsContract.handshake>;
/** Surface name to URL. */
export type Listeners = Readonly<Record<string, string>>;

/** Everything that somebody who has signed in can reach. It goes with the session, and all credentials with it. */
export interface Instance {
  /** The instance token, for whatever opens a connection of its own. */
  readonly token: string;
  /** Where the agent service stands: where this page came from. */
  readonly baseURL: string;
  readonly handshake: Handshake;
  readonly listeners: Listeners;
  readonly proxy: ModelProxy;
  readonly workflow: WorkflowService;
  /** Typed calls of a contract of the agent service. A 401 ends the session, whoever called. */
  client<C extends Contract>(contract: C): Client<C>;
  /** A call of the agent service that no contract of an area has, such as `/metrics`. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** A whole request to the agent service, for a client that makes its own. */
  send(request: Request): Promise<Response>;
  /** Upload a file to a path of the agent service, and be told how far it is. Throws CallFailed, and the signal's reason. */
  upload(path: string, request: UploadRequest): Promise<unknown>;
  /** Aborts when the session is over: for what outlives a page, such as a conversation that goes on. */
  readonly ended: AbortSignal;
  /** Give back what was issued for this session. */
  close(): Promise<void>;
}

const [useInstance, provideInstance] = createContext<Instance>();
export { provideInstance, useInstance };

/** Throws CallFailed where the token is refused, and what `fetch` throws where nothing answers. */
export async function openInstance(token: string, refused: () => void): Promise<Instance> {
  const baseURL = new URL(".", location.href).href.replace(/\/$/, "");
  const ending = new AbortController();
  const send = async (request: Request) => {
    const response = await globalThis.fetch(request);
    if (response.status === 401) refused();
    return response;
  };
  const headers = { "x-agent-service-token": token };
  const client = <C extends Contract>(contract: C) => createClient(contract, { baseURL, headers, fetch: send });

  const [handshake, { listeners: found }] = await Promise.all([
    client(conversationsRunsContract).handshake(),
    client(listenersContract).listeners(),
  ]);
  const listeners = Object.fromEntries(Object.entries(found).map(([surface, { url }]) => [surface, url]));
  const proxy = new ModelProxy(listeners["proxy"], client);
  return {
    token,
    baseURL,
    handshake,
    listeners,
    proxy,
    workflow: new WorkflowService(listeners["workflow"], token),
    client,
    fetch: (path, init) =>
      send(new Request(`${baseURL}${path}`, { ...init, headers: { ...headers, ...(init?.headers as object) } })),
    send,
    upload: async (path, request) => {
      try {
        return await upload(`${baseURL}${path}`, { ...request, headers });
      } catch (error) {
        if (CallFailed.is(error) && error.status === 401) refused();
        throw error;
      }
    },
    ended: ending.signal,
    close: () => {
      ending.abort();
      return proxy.close();
    },
  };
}
