import { setTimeout as sleep } from "node:timers/promises";
import { ports, type Secret } from "@portico/core";
import { Client, Pool, type PoolClient, type PoolConfig } from "pg";
import { isConnectionLost, toUnavailable } from "./unavailable.ts";

export type { PoolClient } from "pg";

/** Time for a connection to be made, or for one to be free. */
const CONNECT_MS = 10_000;
/** The server ends a statement that takes longer, waiting for locks included. */
const STATEMENT_MS = 30_000;
/** And where the server says nothing any more, this side does. */
const SILENCE_MS = 35_000;
/** A transaction whose process stands still lets others go on. */
const IDLE_TRANSACTION_MS = 15_000;

const ATTEMPTS = 3;
const PAUSE_MS = 20;

type Action = "opened" | "read" | "written";

/** Connections to one database. */
export interface Connections {
  /**
   * Run `work` with a connection of its own. One on which anything failed is thrown away; when one was lost, `work` is done again with
   * another, so that a second time must do no harm. Throws RecordsUnavailable.
   */
  use<T>(action: Action, work: (client: PoolClient) => Promise<T>): Promise<T>;
  /**
   * A connection on which `begin` was run, in the same manner: give it back with `release`, with `true` where anything failed. Throws
   * RecordsUnavailable.
   */
  take(begin: string): Promise<PoolClient>;
  /** Wait for what is running and disconnect. */
  end(): Promise<void>;
}

/** Connections are made when they are needed. Throws TypeError for a `url` that is none. */
export function createConnections(url: string | Secret, size: number): Connections {
  const pool = new Pool({ ...toConfig(url), max: size });
  // A connection that the server ends would end the process, too, without these.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  let ended: Promise<void> | undefined;

  const connect = async (): Promise<PoolClient> => {
    if (ended) throw new ports.RecordsUnavailable("The records store is closed");
    return pool.connect();
  };

  const patiently = async <T>(action: Action, attempting: () => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await attempting();
      } catch (cause) {
        if (attempt === ATTEMPTS || !isConnectionLost(cause)) throw toUnavailable(action, cause);
        // The other connections hear meanwhile that they are lost, too.
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
        return result;
      }),
    take: (begin) =>
      patiently("written", async () => {
        const client = await connect();
        await orThrownAway(client, () => client.query(begin));
        return client;
      }),
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

function toConfig(url: string | Secret): PoolConfig {
  const config: PoolConfig = {
    connectionString: typeof url === "string" ? url : url.reveal(),
    application_name: "portico",
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    query_timeout: SILENCE_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_MS,
    keepAlive: true,
  };
  try {
    // Parses it, and connects to nothing.
    void new Client(config);
    return config;
  } catch {
    // Without its cause, which quotes it.
    throw new TypeError("The url of a PostgreSQL store must be a connection URL");
  }
}
