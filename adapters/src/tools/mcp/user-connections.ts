import { ports } from "@portico/core";
import type { McpAuthorization } from "../mcp-authorization.ts";
import { McpConnection } from "./connection.ts";
import type { McpPlace, McpServer } from "./server-options.ts";
import { ToolCalls } from "./tool-calls.ts";

/** Users that are connected at the same time. Their sessions are memory of this process and of the server. */
const MOST_USERS = 200;
/** A connection that is not used for this long is closed. */
const IDLE_MS = 10 * 60_000;
const LOOK_MS = 60_000;

interface UserConnection {
  readonly connection: McpConnection;
  readonly calls: ToolCalls;
  uses: number;
  usedAt: number;
}

interface UserConnectionsGiven {
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly authorization: McpAuthorization;
}

/** One connection to a server for each user, with the user's own account: opened at the first use, and closed when it is idle. */
export class UserConnections {
  #server: McpServer;
  readonly #given: UserConnectionsGiven;
  /** The ones that were used last are at the end. */
  readonly #users = new Map<string, UserConnection>();
  readonly #endings = new Set<Promise<void>>();
  #sweep: ports.Timer | undefined;
  #isClosed = false;

  constructor(server: McpServer, given: UserConnectionsGiven) {
    this.#server = server;
    this.#given = given;
  }

  /** Run work with the tools of a user. Throws ToolsNotConnected for callers without a user or account, and ToolsUnavailable. */
  async use<T>(userId: string | undefined, work: (calls: ToolCalls) => Promise<T>): Promise<T> {
    const { authorization, clock } = this.#given;
    const { id } = this.#server;
    if (userId === undefined) throw new ports.ToolsNotConnected(`MCP server "${id}"`);
    // Without an account there is nothing to connect with, and nothing to try again.
    await authorization.token(userId);
    if (this.#isClosed) throw new ports.ToolsUnavailable(`MCP server "${id}" is closed`);
    const user = this.#users.get(userId) ?? this.#open(userId);
    this.#users.delete(userId);
    this.#users.set(userId, user);
    user.uses++;
    try {
      return await work(user.calls);
    } finally {
      user.uses--;
      user.usedAt = clock.now();
    }
  }

  /** Use another place from now on: with other secrets. */
  replacePlace(place: McpPlace): void {
    this.#server = { ...this.#server, place };
    for (const { connection } of this.#users.values()) connection.replacePlace(place);
  }

  /** Resolves when every connection has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#sweep?.cancel();
    for (const [userId, user] of this.#users) this.#end(userId, user);
    await Promise.all(this.#endings);
  }

  #open(userId: string): UserConnection {
    const { clock, telemetry, authorization } = this.#given;
    if (this.#users.size >= MOST_USERS) {
      const idle = [...this.#users].find(([, { uses }]) => uses === 0);
      if (!idle) throw new ports.ToolsUnavailable(`MCP server "${this.#server.id}" serves too many users now`);
      this.#end(...idle);
    }
    const server: McpServer = { ...this.#server, tokens: (refused) => authorization.token(userId, refused) };
    const connection = new McpConnection(server, clock, telemetry.log);
    this.#sweep ??= clock.after(LOOK_MS, () => this.#closeIdle());
    return { connection, calls: new ToolCalls(server, connection, clock), uses: 0, usedAt: clock.now() };
  }

  #closeIdle(): void {
    const { clock } = this.#given;
    for (const [userId, user] of this.#users)
      if (user.uses === 0 && user.usedAt + IDLE_MS <= clock.now()) this.#end(userId, user);
    this.#sweep = this.#users.size > 0 ? clock.after(LOOK_MS, () => this.#closeIdle()) : undefined;
  }

  #end(userId: string, { connection }: UserConnection): void {
    this.#users.delete(userId);
    const ending = connection.close().catch(() => undefined);
    this.#endings.add(ending);
    void ending.finally(() => this.#endings.delete(ending));
  }
}
