import { setTimeout as sleep } from "node:timers/promises";
import { defineAdapter, type Live, ports, type Secret } from "@portico/core";
import { Redis, type RedisOptions } from "ioredis";
import { isSamePlace } from "../same-place.ts";
import { createTlsContext, type TlsOptions } from "../tls-context.ts";
import { checkRedisPrefix, toRedisAddress } from "./redis-address.ts";
import { Refusals } from "./refusals.ts";
import { redis, type RedisServer } from "./server.ts";

/** Options of `ioredisServer`. */
export interface IoredisServerOptions {
  /** `redis://user:password@host:port/database`, or `rediss://…` for TLS. */
  readonly url: string | Secret;
  /** 1-64 characters of letters, digits, `_`, `.`, `:` and `-`. Instances on one server need different prefixes. Default: `portico`. */
  readonly prefix?: string;
  /** Connect with TLS. Default for `rediss://`: the authorities that Node.js trusts, and no client certificate. */
  readonly tls?: TlsOptions | undefined;
  /**
   * Other credentials and certificates for the same server, while the app is open: for the connections that are opened later. Open ones stay.
   * Default: they never change.
   */
  readonly rotation?: Live<Pick<IoredisServerOptions, "url" | "tls">> | undefined;
  /** A command, and a connection attempt, fails after this time. Default: 5,000. */
  readonly commandTimeoutMs?: number;
}

/**
 * A Redis server from version 6.2 on, through ioredis. Opening waits until the server answers or the first attempt to connect
 * fails, and succeeds in both cases. Throws TypeError for invalid options.
 */
export const ioredisServer = defineAdapter({
  name: "redis/ioredis",
  port: redis,
  needs: { telemetry: ports.telemetry },
  async open({ telemetry }, options: IoredisServerOptions, scope): Promise<RedisServer> {
    const settings = toSettings(options);
    const connections: Redis[] = [];
    const connect = (more: RedisOptions = {}): Redis => {
      const connection = new Redis({ ...settings, ...more });
      // Without a listener, ioredis prints errors. They contain the address.
      connection.on("error", () => {});
      connections.push(connection);
      return connection;
    };
    scope.onClose(() => connections.forEach((connection) => connection.disconnect()));
    if (options.rotation) {
      scope.onClose(
        options.rotation.follow(({ url, tls }) => {
          if (!isSamePlace(options.url, url)) throw new TypeError("Another Redis server needs a restart");
          const { username, password, tls: secured } = toSettings({ ...options, url, tls });
          const access = { username, password, tls: secured };
          // ioredis reads them for each attempt to connect.
          return () =>
            [settings, ...connections.map((connection) => connection.options)].forEach((each) => Object.assign(each, access));
        }),
      );
    }
    const commands = connect();
    logAbsence(commands, telemetry.log);
    scope.onClose(
      telemetry.gauge({
        name: "portico_redis_up",
        help: "1 if Redis answers this process, otherwise 0",
        read: () => ask(commands),
      }),
    );
    const refusals = new Refusals(telemetry.log);
    scope.onClose(telemetry.gauge(refusals.gauge));
    await firstAttempt(commands);
    const refuse: RedisServer["refuse"] = (of) => refusals.count(of);
    return { prefix: checkRedisPrefix(options.prefix ?? "portico"), commands, connect, refuse };
  },
});

/** Resolves when a connection is ready, or its first attempt has failed. */
export function firstAttempt(connection: Redis): Promise<void> {
  if (connection.status === "ready") return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      connection.off("ready", end).off("close", end).off("end", end);
      resolve();
    };
    connection.on("ready", end).on("close", end).on("end", end);
  });
}

/** A frozen server keeps its connections. */
async function ask(connection: Redis): Promise<0 | 1> {
  const isLate = sleep(ANSWER_MS, false, { ref: false });
  const isThere = connection.ping().then(
    () => true,
    () => false,
  );
  return (await Promise.race([isThere, isLate])) ? 1 : 0;
}

/** Metrics wait this long for Redis. */
const ANSWER_MS = 500;
const TIMEOUT_MS = 5000;
const LONGEST_PAUSE_MS = 1000;

function toSettings({ url, tls, commandTimeoutMs = TIMEOUT_MS }: IoredisServerOptions): RedisOptions {
  if (!Number.isInteger(commandTimeoutMs) || commandTimeoutMs < 1) {
    throw new TypeError("The timeout of Redis commands is a whole number of milliseconds from 1");
  }
  const address = toRedisAddress(typeof url === "string" ? url : url.reveal());
  const isEncrypted = tls !== undefined || address.isEncrypted;
  return {
    ...address.options,
    ...(isEncrypted && { tls: { secureContext: createTlsContext("Redis", tls ?? {}) } }),
    connectionName: "portico",
    connectTimeout: commandTimeoutMs,
    commandTimeout: commandTimeoutMs,
    // Ends connections to a server that does not answer, so that no commands pile up.
    socketTimeout: commandTimeoutMs,
    // Commands fail at once without a connection, and are never sent twice.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResubscribe: false,
    retryStrategy: (attempt) => Math.min(attempt * 50, LONGEST_PAUSE_MS),
    // A primary that became a replica refuses writes until the name leads to the new primary.
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
  };
}

/** One line when the server becomes unavailable, and one when it is available again. */
function logAbsence(connection: Redis, log: ports.Log): void {
  let isAway = false;
  let lastError: Error | undefined;
  connection.on("error", (error: Error) => void (lastError = error));
  connection.on("ready", () => {
    if (isAway) log.info("Redis is available again");
    isAway = false;
  });
  connection.on("reconnecting", () => {
    if (!isAway) log.warn("Redis is unavailable", { reason: reasonOf(lastError) }, lastError);
    isAway = true;
  });
}

/** A code of Node's sockets or of TLS, or the first word of Redis's answer, such as `WRONGPASS`. */
function reasonOf(error: Error | undefined): string | undefined {
  const code = error && "code" in error ? String(error.code) : /^[A-Z]{2,20}(?= )/.exec(error?.message ?? "")?.[0];
  return code !== undefined && /^[A-Z0-9_]{2,60}$/.test(code) ? code : undefined;
}
