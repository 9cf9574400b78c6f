import type { IncomingMessage } from "node:http";
import { type AuthorizationServer, startAuthorizationServer } from "./authorization-server.ts";
import { startMcpHttpServer } from "./mcp-http-server.ts";
import { createToolsServer } from "./mcp-tools-server.ts";

/** An MCP server over streamable HTTP that needs a token of its own authorization server. */
export interface McpAccountServer {
  readonly url: string;
  readonly authorization: AuthorizationServer;
  /** Headers of the requests that had a valid token. */
  readonly headers: readonly IncomingMessage["headers"][];
  close(): Promise<void>;
}

/** `resourceMetadata` replaces parts of its metadata (RFC 9728). */
export async function startMcpAccountServer(
  options: Parameters<typeof startAuthorizationServer>[0] & {
    readonly resourceMetadata?: Readonly<Record<string, unknown>>;
    /** Makes the server of each session. Default: `createToolsServer`. */
    readonly createSessionServer?: Parameters<typeof startMcpHttpServer>[0];
  } = {},
): Promise<McpAccountServer> {
  const authorization = await startAuthorizationServer(options);
  const server = await startMcpHttpServer(options.createSessionServer ?? createToolsServer, {
    guard(request) {
      const { origin, pathname } = new URL(request.url);
      const resource = `${origin}/mcp`;
      if (pathname === "/.well-known/oauth-protected-resource/mcp")
        return Response.json({ resource, authorization_servers: [authorization.issuer], ...options.resourceMetadata });
      if (authorization.userOf(request.headers.get("authorization") ?? undefined, resource) !== undefined) return undefined;
      const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
      const challenge = `Bearer error="invalid_token", resource_metadata="${metadata}", scope="shop.read"`;
      return new Response("hidden-word", { status: 401, headers: { "www-authenticate": challenge } });
    },
  });
  return {
    url: server.url,
    authorization,
    headers: server.headers,
    close: async () => void (await Promise.all([server.close(), authorization.close()])),
  };
}
