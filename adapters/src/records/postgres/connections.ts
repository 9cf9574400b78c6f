import { Client, Pool, type PoolClient, type PoolConfig } from "pg";
import { type Secret, ports } from "@portico/core";
import { isConnectionLost, toUnavailable } from "./unavailable.ts";

export type { PoolClient } from "pg";

/** Time for a connection to be made, or for one to be free. */
const CONNECT_MS = 5000;
/** The server ends a statement that takes longer, waiting for locks included. */
const STATEMENT_MS = 30_000;
/** And where the server says nothing any more, this side does. */
const SILENCE_MS = 35_000;
/** A transaction whose process stands still lets others go on. */
const IDLE_TRANSACTION_MS = 15_000;

/** Connections to one database. */
export interface Connections {
  /**
   * Run `work` with a connection of its own. One on which anything failed is thrown away; when one was lost, `work` is done once more with
   * another, so it may only read, or begin. Throws RecordsUnavailable.
   */
  use<T>(action: "opened" | "read" | "written", work: (client: PoolClient) => Promise<T>): Promise<T>;
  /** The connection itself, for a work of several steps: give it back with `release`, with `true` where anything failed. */
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

  const attempt = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> => {
    if (ended) throw new ports.RecordsUnavailable("The records store is closed");
    const client = await pool.connect();
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      client.release(true);
      throw error;
    }
  };

  const patiently = async <T>(action: "opened" | "read" | "written", attempting: () => Promise<T>): Promise<T> => {
    try {
      return await attempting().catch((error: unknown) => {
        if (!isConnectionLost(error)) throw error;
        return attempting();
      });
    } catch (cause) {
      throw toUnavailable(action, cause);
    }
  };

  return {
    use: (action, work) => patiently(action, () => attempt(work)),
    take: (begin) =>
      patiently("written", async () => {
        const client = await pool.connect();
        try {
          await client.query(begin);
          return client;
        } catch (error) {
          client.release(true);
          throw error;
        }
      }),
    end: () => (ended ??= pool.end()),
  };
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
