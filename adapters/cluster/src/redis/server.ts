import { definePort, type Port } from "@portico/core";
import type { Redis, RedisOptions } from "ioredis";

/** One Redis server, for the adapters of this package that use it. They share its settings and one connection for commands. */
export interface RedisServer {
  /** Every key and channel of the instance begins with this and `:`. */
  readonly prefix: string;
  /**
   * A shared connection for commands that answer at once. It reconnects by itself. A command fails if there is no connection, if
   * the connection is lost before its answer, or after the timeout; it is never repeated.
   */
  readonly commands: Redis;
  /**
   * A new connection with the same settings, for subscriptions and for commands that block. It connects at once in the background
   * and reconnects by itself. It closes with the server.
   */
  connect(options?: RedisOptions): Redis;
  /**
   * Something in Redis is not what a process of this instance writes, and was ignored. It is counted in a metric, and logged at most
   * once a minute.
   */
  refuse(of: RedisUse): void;
}

/** What an instance uses Redis for. */
export type RedisUse = "bus" | "engine" | "presence";

/** The port of the Redis server. Only adapters use it. */
export const redis: Port<RedisServer> = definePort<RedisServer>("redis");

/** Run `run` now if the connection is ready, and each time when it becomes ready. */
export function whenReady(connection: Redis, run: () => void): void {
  connection.on("ready", run);
  if (connection.status === "ready") run();
}
