import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { McpAuthorization } from "@portico/adapters/tools/mcp-authorization";
import { ports } from "@portico/core";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { commandActor } from "./command-actor.ts";
import { dataDirectory } from "./data-directory.ts";
import { makeDataDirectory } from "./data-lock.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { hasStore, withStores } from "./store-app.ts";

/** As long as a begun connection is valid. */
const PATIENCE_MS = 10 * 60_000;
const MOST_ADDRESS = 8192;

/**
 * Connects an MCP server. Calls `show` with the address at which a person agrees, and waits until the browser comes back to this machine. A
 * running service uses the account at once. Returns the granted scopes. Throws CommandFailed: 64 for a server without `auth`, 1 if it
 * cannot be connected.
 */
export async function login(flags: SettingsFlags, server: string, show: (url: string) => void): Promise<string | undefined> {
  const { settings } = await readSettings(flags);
  instanceAuthOf(settings, server);
  if (!namesCluster(settings)) makeDataDirectory(dataDirectory(settings.dataDir));
  return withAuthorization(settings, server, async (authorization, audit) => {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const back = await listenForReturn(signal);
    try {
      const begun = await authorization.begin({ redirectUrl: back.url, keepsClient: false }, signal);
      show(begun.url);
      const received = await back.received(begun.state);
      const fact = { action: "mcp-server.connect", object: server, who: commandActor() };
      const grant = await audit.attempt(fact, () => authorization.finish({ ...received, state: begun.state }, signal));
      return grant.scope;
    } catch (error) {
      if (signal.aborted) throw new CommandFailed("The browser did not come back within 10 minutes", EXIT.failed);
      throw error;
    } finally {
      back.close();
    }
  });
}

/** Disconnects an MCP server. False if it was not connected. Throws as `login`. */
export async function logout(flags: SettingsFlags, server: string): Promise<boolean> {
  const { settings } = await readSettings(flags);
  instanceAuthOf(settings, server);
  if (!hasStore(settings)) return false;
  return withAuthorization(settings, server, (authorization, audit) => {
    const fact = { action: "mcp-server.disconnect", object: server, who: commandActor() };
    return audit.attempt(fact, () => authorization.disconnect(undefined, new AbortController().signal));
  });
}

/** The servers of the settings that have `auth`, and their accounts. */
export async function statuses(flags: SettingsFlags) {
  const { settings } = await readSettings(flags);
  const found = [];
  for (const [server, { auth }] of Object.entries(settings.mcpServers)) {
    // Each user has their own account.
    if (auth?.per !== "instance") continue;
    const grant: ports.ToolGrant = hasStore(settings)
      ? await withAuthorization(settings, server, (authorization) => authorization.status())
      : { state: "not_connected" };
    const { state, connectedAt, scope } = grant;
    found.push({
      server,
      state,
      connectedAt: connectedAt === undefined ? undefined : new Date(connectedAt).toISOString(),
      scope,
    });
  }
  return found;
}

function ownAuthOf({ mcpServers }: PlatformSettings, server: string) {
  const { url, auth } = Object.hasOwn(mcpServers, server) ? mcpServers[server]! : {};
  if (url !== undefined && auth) return { url: new URL(url), auth };
  const known = Object.keys(mcpServers).filter((id) => mcpServers[id]!.auth);
  throw new CommandFailed(
    `The settings have no MCP server "${server}" with auth. Servers with auth: ${known.join(", ") || "none"}`,
    EXIT.usage,
  );
}

/** Throws CommandFailed (64) if each user has their own account, which only the user connects. */
function instanceAuthOf(settings: PlatformSettings, server: string): void {
  if (ownAuthOf(settings, server).auth.per === "instance") return;
  throw new CommandFailed(
    `Each user connects their own account of "${server}": in the console, or with the calls of /api/tool-accounts`,
    EXIT.usage,
  );
}

async function withAuthorization<T>(
  settings: PlatformSettings,
  server: string,
  use: (authorization: ports.ToolAuthorization, audit: ports.Audit) => Promise<T>,
): Promise<T> {
  const { url, auth } = ownAuthOf(settings, server);
  return withStores(settings, { needed: [ports.records, ports.secrets, ports.sealing] }, async (app) => {
    const given = { records: app.port(ports.records), sealing: app.port(ports.sealing), clock: app.port(ports.clock) };
    const authorization = new McpAuthorization({ id: server, url, auth, outbound: settings.outbound }, given);
    try {
      return await use(authorization, app.port(ports.audit));
    } catch (error) {
      if (error instanceof ports.ToolAuthorizationFailed)
        throw new CommandFailed(`${error.message} (${error.code})`, EXIT.failed, error);
      throw error;
    } finally {
      await authorization.close();
    }
  });
}

type Received = Pick<ports.FinishAuthorization, "code" | "iss" | "error">;

/** Waits on this machine for the browser (RFC 8252, 7.3). Requests with another state are refused, and change nothing. */
async function listenForReturn(signal: AbortSignal) {
  let expected: string | undefined;
  const received = Promise.withResolvers<Received>();
  const host = createServer({ maxHeaderSize: MOST_ADDRESS }, (request, response) => {
    const url = URL.parse(request.url ?? "", "http://127.0.0.1");
    const given = (name: string) => url?.searchParams.get(name) ?? undefined;
    const isExpected = url?.pathname === "/callback" && expected !== undefined && given("state") === expected;
    const text = isExpected ? "You can close this window." : "This address is not expected.";
    response.writeHead(isExpected ? 200 : 404, { "content-type": "text/plain; charset=utf-8", connection: "close" }).end(text);
    if (isExpected) received.resolve({ code: given("code"), iss: given("iss"), error: given("error") });
  });
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  signal.addEventListener("abort", () => received.reject(signal.reason), { once: true });
  received.promise.catch(() => undefined);
  return {
    url: `http://127.0.0.1:${(host.address() as AddressInfo).port}/callback`,
    received(state: string) {
      expected = state;
      return received.promise;
    },
    close() {
      host.close();
      host.closeIdleConnections();
    },
  };
}
