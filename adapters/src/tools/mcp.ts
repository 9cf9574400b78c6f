import { defineAdapter, orAborted, ports, type Scope } from "@portico/core";
import { readServerOptions } from "./mcp/server-options.ts";
import type { McpServer } from "./mcp/server-options.ts";
import type { ToolCalls } from "./mcp/tool-calls.ts";
import type { McpAuthorization } from "./mcp-authorization.ts";
import type { McpToolsOptions } from "./mcp-options.ts";

export type { McpToolsOptions } from "./mcp-options.ts";

/**
 * The tools of one MCP server: a program that is started, or a URL with streamable HTTP. Opening neither waits for the server nor
 * fails without it. It throws a TypeError or RangeError for invalid options, and for `auth`, which `mcpAccountTools` has.
 */
export const mcpTools = defineAdapter({
  name: "tools/mcp",
  port: ports.tools,
  needs: { clock: ports.clock, telemetry: ports.telemetry },
  async open(given, options: McpToolsOptions, scope): Promise<ports.ToolSource> {
    if (options.auth) throw new TypeError(`MCP server "${options.id}": auth needs mcpAccountTools`);
    return openSource(readServerOptions(options), options, given, scope);
  },
});

/**
 * The tools of one MCP server that needs access to an account, by OAuth 2.1. Its tokens are sealed in the store. A person connects the
 * account with the source's `authorization`; until then its tools throw ToolsNotConnected. Otherwise as `mcpTools`.
 */
export const mcpAccountTools = defineAdapter({
  name: "tools/mcp-account",
  port: ports.tools,
  needs: { clock: ports.clock, telemetry: ports.telemetry, records: ports.records, sealing: ports.sealing },
  async open(given, options: McpToolsOptions, scope): Promise<ports.ToolSource> {
    const server = readServerOptions(options);
    const { auth, outbound } = options;
    if (server.place.kind !== "address" || !auth) throw new TypeError(`MCP server "${options.id}" needs a url and auth`);
    const { McpAuthorization } = await import("./mcp-authorization.ts");
    const authorization = new McpAuthorization({ id: server.id, url: server.place.url, auth, outbound }, given);
    scope.onClose(() => authorization.close());
    authorization.tend();
    if (auth.per === "user") return openUserSource(server, options, { ...given, authorization }, scope);
    const tokens = (refused?: string) => authorization.token(undefined, refused);
    return { ...(await openSource({ ...server, tokens }, options, given, scope)), authorization };
  },
});

/** Each user has a connection with their own account, and gets its tools. */
async function openUserSource(
  server: McpServer,
  { rotation, ...options }: McpToolsOptions,
  given: {
    readonly clock: ports.Clock;
    readonly telemetry: ports.Telemetry;
    readonly authorization: McpAuthorization;
  },
  scope: Scope,
): Promise<ports.ToolSource> {
  const { UserConnections } = await import("./mcp/user-connections.ts");
  const users = new UserConnections(server, given);
  scope.onClose(() => users.close());
  if (rotation) {
    scope.onClose(
      rotation.follow((next) => {
        if (!next) return () => {};
        const { place } = readServerOptions({ ...options, env: next.env, headers: next.headers });
        return () => users.replacePlace(place);
      }),
    );
  }
  const use = <T>(
    caller: Pick<ports.ToolCaller, "userId"> | undefined,
    signal: AbortSignal | undefined,
    work: (calls: ToolCalls) => Promise<T>,
  ) => orAborted(users.use(caller?.userId, work), signal);
  return {
    id: server.id,
    authorization: given.authorization,
    owns: (toolId) => toolId.startsWith(`${server.id}/`),
    list: (signal, caller) => use(caller, signal, (calls) => calls.list(signal)),
    call: (call, signal) => use(call.caller, signal, (calls) => calls.call(call, signal)),
    readResource: (read, signal) => use(read.caller, signal, (calls) => calls.readResource(read, signal)),
    listPrompts: (signal, caller) => use(caller, signal, (calls) => calls.listPrompts(signal)),
    fillPrompt: (prompt, signal) => use(prompt.caller, signal, (calls) => calls.fillPrompt(prompt, signal)),
  };
}

async function openSource(
  server: McpServer,
  { rotation, ...options }: McpToolsOptions,
  { clock, telemetry }: { readonly clock: ports.Clock; readonly telemetry: ports.Telemetry },
  scope: Scope,
): Promise<ports.ToolSource> {
  // The client library loads slowly. An app without MCP servers does not load it.
  const [{ McpConnection }, { ToolCalls: Calls }] = await Promise.all([
    import("./mcp/connection.ts"),
    import("./mcp/tool-calls.ts"),
  ]);
  const connection = new McpConnection(server, clock, telemetry.log);
  scope.onClose(() => connection.close());
  if (rotation) {
    scope.onClose(
      rotation.follow((next) => {
        if (!next) return () => {};
        const { place } = readServerOptions({ ...options, env: next.env, headers: next.headers });
        return () => connection.replacePlace(place);
      }),
    );
  }
  // In the background: the first caller waits for it, and gets its result.
  void connection.session().catch(() => undefined);
  const calls = new Calls(server, connection, clock);
  return {
    id: server.id,
    owns: (toolId) => toolId.startsWith(`${server.id}/`),
    problems: () => connection.problems,
    list: (signal) => calls.list(signal),
    call: (call, signal) => calls.call(call, signal),
    readResource: (read, signal) => calls.readResource(read, signal),
    listPrompts: (signal) => calls.listPrompts(signal),
    fillPrompt: (prompt, signal) => calls.fillPrompt(prompt, signal),
  };
}
