import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** Revisions of the protocol: of 2025, with a handshake, and 2026-07-28, without one. */
export const REVISIONS = ["2025", "2026"] as const;

/** The official client of the MCP server of a service. It sends the token as bearer. */
export async function connectMcp(url: string, token: string, revision: (typeof REVISIONS)[number] = "2026"): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: revision === "2025" ? "legacy" : { pin: "2026-07-28" } } },
  );
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit }));
  return client;
}

/** The text of a tool's answer. */
export function textOf(result: { readonly content: readonly object[] }): string {
  return (result.content[0] as { readonly text: string }).text;
}
