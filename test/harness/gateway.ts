import { createServer, request as openRequest } from "node:http";
import type { AddressInfo } from "node:net";

/** A gateway between a proxy and its provider. */
export interface Gateway extends AsyncDisposable {
  readonly baseUrl: string;
  leadTo(url: string, token: string): void;
  /** How many calls it passed on. */
  calls(): number;
  /** The trail of each call. */
  trails(): readonly unknown[];
}

/** Passes calls on to another address with another key. The address is known only after its callers were configured. */
export async function startGateway(): Promise<Gateway> {
  let target = { url: "", token: "" };
  const trails: unknown[] = [];
  const server = createServer((incoming, response) => {
    trails.push(incoming.headers["x-portico-trail"]);
    const { "x-api-key": _key, authorization: _bearer, host: _host, ...headers } = incoming.headers;
    const onward = openRequest(
      `${target.url}${incoming.url?.replace("/v1", "")}`,
      { method: "POST", headers: { ...headers, "x-api-key": target.token } },
      (answer) => answer.pipe(response.writeHead(answer.statusCode ?? 500, answer.headers)),
    );
    onward.on("error", () => response.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    leadTo(url: string, token: string) {
      target = { url, token };
    },
    calls: () => trails.length,
    trails: () => trails,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
