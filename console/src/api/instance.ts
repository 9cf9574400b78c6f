import { CallFailed, type CallResult, type Client, createClient } from "@portico/core/client";
import type { Contract } from "@portico/core/contract";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { serviceTokenContract } from "@portico/plugins/workflow-service/service-tokens-contract";
import { listenersContract } from "@portico/operator/listeners/contract";
import { createContext } from "svelte";
import { ModelProxy } from "./model-proxy.ts";
import { pagePace } from "./page-pace.ts";
import { type UploadRequest, upload } from "./upload.ts";
import { WorkflowService } from "./workflow-service.svelte.ts";

export type Handshake = CallResult<typeof conversationsRunsContract.handshake>;
/** Surface name to URL. */
export type Listeners = Readonly<Record<string, string>>;

/** Everything that a signed-in user can reach. It ends with the session, together with all credentials. */
export interface Instance {
  /** The token of the agent service, for code that opens its own connection. */
  readonly token: string;
  /** Whether the token is a session of a sign-in link. A session is not the instance access token. */
  readonly isSession: boolean;
  /** The address of the agent service, which served this page. */
  readonly baseURL: string;
  readonly handshake: Handshake;
  readonly listeners: Listeners;
  readonly proxy: ModelProxy;
  readonly workflow: WorkflowService;
  /** Typed calls of a contract of the agent service. A 401 on any call ends the session. */
  client<C extends Contract>(contract: C): Client<C>;
  /** Sends a complete request to the agent service, for a client that builds its own requests. */
  send(request: Request): Promise<Response>;
  /** Upload a file to a path of the agent service, with progress reports. Throws CallFailed, and the signal's reason. */
  upload(path: string, request: UploadRequest): Promise<unknown>;
  /** Aborts when the session ends. For work that outlives a page, such as a running conversation. */
  readonly ended: AbortSignal;
  /** Revoke the tokens that were issued for this session. */
  close(): Promise<void>;
}

const [useInstance, provideInstance] = createContext<Instance>();
export { provideInstance, useInstance };

/** The address of the agent service, which served this page. */
export function ownAddress(): string {
  return new URL(".", location.href).href.replace(/\/$/, "");
}

/** Throws CallFailed if the token is refused, and the error of `fetch` if the service cannot be reached. */
export async function openInstance(token: string, refused: () => void): Promise<Instance> {
  const baseURL = ownAddress();
  const ending = new AbortController();
  const send = async (request: Request) => {
    pagePace.requested();
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
  const getsServiceTokens = handshake.identity.role === "owner" && handshake.capabilities["serviceTokens"] === true;
  const issueServiceToken = async () => (await client(serviceTokenContract).issue()).token;
  const proxy = new ModelProxy(listeners["proxy"], client);
  return {
    token,
    isSession: token.startsWith("session_"),
    baseURL,
    handshake,
    listeners,
    proxy,
    workflow: new WorkflowService(listeners["workflow"], token, getsServiceTokens ? issueServiceToken : undefined),
    client,
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
