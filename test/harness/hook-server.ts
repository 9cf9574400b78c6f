import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** One request that a hook received. */
export interface Hooked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: any;
}

/** A server that receives notifications. */
export interface HookServer extends AsyncDisposable {
  readonly url: string;
  /** For `httpNode`. */
  readonly host: string;
  readonly received: readonly Hooked[];
  /** The status of the following answers. Undefined: requests get no answer. Default 204. */
  status: number | undefined;
}

export async function startHookServer(): Promise<HookServer> {
  const received: Hooked[] = [];
  const server = createServer((request, response) => {
    const { method = "", url = "", headers } = request;
    void request.toArray().then((chunks) => {
      const text = Buffer.concat(chunks).toString();
      const isJson = headers["content-type"]?.startsWith("application/json");
      received.push({ method, path: url, headers, body: isJson ? JSON.parse(text) : text });
      if (hook.status !== undefined) response.writeHead(hook.status).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const hook: HookServer = {
    ...{ url: `http://${host}/hook`, host, received, status: 204 },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return hook;
}
