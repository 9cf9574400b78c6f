import { setTimeout as sleep } from "node:timers/promises";
import { ports, type Secret } from "@portico/core";
import { isSamePlace } from "../../same-place.ts";
import { Client, type ClientConfig, Pool, type PoolClient } from "pg";
import { createTlsContext, type TlsOptions } from "../../tls-context.ts";
import { checkConnectionUrl } from "./connection-url.ts";
import { forgetsStatements, isPooled } from "./pooler.ts";
import { neverPrepare } from "./prepared.ts";
import { isConnectionLost, toUnavailable } from "./unavailable.ts";

export type { Client, PoolClient } from "pg";

/** Timeout for creating a connection, or for getting a free one. */
const CONNECT_MS = 10_000;
/** The server ends a statement after this time, including its wait for locks. */
const STATEMENT_MS = 30_000;
/** If the server is silent, the client ends the statement after this time. */
const SILENCE_MS = 35_000;
/** A stalled process loses its transaction after this time, so that others can continue. */
const IDLE_TRANSACTION_MS = 5_000;

/** An answer of the server says for this time that it answers. */
const FRESH_MS = 500;

const ATTEMPTS = 3;
const PAUSE_MS = 20;

/** What is between the clients and the server. */
export type Pooler = "none" | "keeps statements" | "loses statements";

type Action = "opened" | "read" | "written";

/** Connections to one database. */
export interface Connections {
  /**
   * Run `work` with its own connection. A connection with any error is discarded. If the connection was lost, `work` runs again
   * with another one, so it must be repeatable. Throws RecordsUnavailable.
   */
  use<T>(action: Action, work: (client: PoolClient) => Promise<T>): Promise<T>;
  /**
   * A connection on which `begin` was run, in the same way. Give it back with `release`; pass `true` after any error. Throws
   * RecordsUnavailable.
   */
  take(begin: string): Promise<PoolClient>;
  /** A connection outside of the pool, not connected yet. It gives up an answer, and connecting, after `timeoutMs`. */
  dedicated(purpose: string, timeoutMs: number): Client;
  /** Whether `url` is a pooler, and whether that keeps the prepared statements of its clients. Throws RecordsUnavailable. */
  pooler(): Promise<Pooler>;
  /** Why the server does not answer this process now; undefined if it answers. Calls at the same time ask once. Never rejects. */
  fault(): Promise<string | undefined>;
  /**
   * Checks other credentials or certificates. Returns the function that uses them for later connections; open ones stay. Throws TypeError for
   * invalid ones, and for another server or database.
   */
  prepareAccess(access: ConnectionAccess): () => void;
  /** How many connections work, are free, and how many callers wait for one. */
  readonly counts: { readonly busy: number; readonly free: number; readonly waiting: number };
  /** Wait for running work and disconnect. */
  end(): Promise<void>;
}

/** Where to connect, and the credentials and certificates. */
export interface ConnectionAccess {
  readonly url: string | Secret;
  /** Where connections outside of the pool go. Default: `url`. */
  readonly directUrl?: string | Secret | undefined;
  readonly tls?: TlsOptions | undefined;
}

/** Where and how to connect. */
export interface ConnectionOptions extends ConnectionAccess {
  /** Maximum number of connections. */
  readonly poolSize: number;
  /** Whether connections of the pool prepare statements that they repeat. Default: true. */
  readonly preparedStatements?: boolean | undefined;
}

/** Connections are created on demand. Throws TypeError for invalid options. */
export function createConnections({
  url,
  directUrl = url,
  tls,
  poolSize,
  preparedStatements = true,
}: ConnectionOptions): Connections {
  if (!Number.isInteger(poolSize) || poolSize < 1) throw new TypeError("The size of a pool is a whole number from 1");
  const config = toConnectionConfig(url, tls);
  let direct = toConnectionConfig(directUrl, tls);
  const pool = new Pool({ ...config, max: poolSize });
  // Without these listeners, a connection that the server ends would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    client.on("error", () => {});
    if (!preparedStatements) neverPrepare(client);
  });
  let ended: Promise<void> | undefined;
  let answeredAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<string | undefined> | undefined;

  const connect = async (): Promise<PoolClient> => {
    if (ended) throw new ports.RecordsUnavailable("The records store is closed");
    return pool.connect();
  };

  const ask = async (): Promise<string | undefined> => {
    try {
      const client = await connect();
      await orThrownAway(client, () => client.query("SELECT 1"));
      client.release();
      answeredAt = performance.now();
      return undefined;
    } catch {
      return "not reachable";
    }
  };

  const patiently = async <T>(action: Action, attempting: () => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await attempting();
      } catch (cause) {
        if (attempt === ATTEMPTS || !isConnectionLost(cause)) throw toUnavailable(action, cause);
        // Meanwhile the pool notices its other lost connections.
        await sleep(attempt * PAUSE_MS);
      }
    }
  };

  return {
    use: (action, work) =>
      patiently(action, async () => {
        const client = await connect();
        const result = await orThrownAway(client, work);
        client.release();
        answeredAt = performance.now();
        return result;
      }),
    take: (begin) =>
      patiently("written", async () => {
        const client = await connect();
        await orThrownAway(client, () => client.query(begin));
        answeredAt = performance.now();
        return client;
      }),
    dedicated: (purpose, timeoutMs) =>
      new Client({
        ...direct,
        application_name: `portico ${purpose}`,
        connectionTimeoutMillis: timeoutMs,
        query_timeout: timeoutMs,
        statement_timeout: timeoutMs,
      }),
    pooler: () =>
      patiently("opened", async () => {
        const client = await connect();
        const goesThrough = await orThrownAway(client, isPooled);
        client.release();
        if (!goesThrough) return "none";
        return (await forgetsStatements(config)) ? "loses statements" : "keeps statements";
      }),
    async fault() {
      // A busy pool proves it without another statement, which would have to wait for a connection.
      if (performance.now() - answeredAt < FRESH_MS) return undefined;
      asking ??= ask().finally(() => (asking = undefined));
      return asking;
    },
    prepareAccess(next) {
      const nextDirectUrl = next.directUrl ?? next.url;
      if (!isSamePlace(url, next.url) || !isSamePlace(directUrl, nextDirectUrl))
        throw new TypeError("Another server or database of PostgreSQL needs a restart");
      const [config, nextDirect] = [toConnectionConfig(next.url, next.tls), toConnectionConfig(nextDirectUrl, next.tls)];
      return () => {
        // The pool reads its options for each new connection.
        Object.assign(pool.options, config, { ssl: config.ssl });
        direct = nextDirect;
      };
    },
    get counts() {
      const { totalCount, idleCount, waitingCount } = pool;
      return { busy: totalCount - idleCount, free: idleCount, waiting: waitingCount };
    },
    end: () => (ended ??= pool.end()),
  };
}

async function orThrownAway<T>(client: PoolClient, work: (client: PoolClient) => Promise<T>): Promise<T> {
  try {
    return await work(client);
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** One connection's configuration, for `pg`. Throws TypeError for invalid options. */
export function toConnectionConfig(url: string | Secret, tls: TlsOptions | undefined): ClientConfig {
  const connectionString = checkConnectionUrl(typeof url === "string" ? url : url.reveal(), tls !== undefined);
  const config: ClientConfig = {
    connectionString,
    application_name: "portico",
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    query_timeout: SILENCE_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_MS,
    keepAlive: true,
    ...(tls && { ssl: { secureContext: createTlsContext("PostgreSQL", tls) } }),
  };
  try {
    // Parses the URL without connecting.
    void new Client(config);
    return config;
  } catch {
    // Without its cause, which quotes the URL.
    throw new TypeError("The url of a PostgreSQL store must be a connection URL");
  }
}
