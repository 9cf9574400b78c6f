import type { Redis } from "ioredis";

/** The commands of Redis that carry messages. */
export interface ChannelCommands {
  readonly publish: "publish" | "spublish";
  readonly subscribe: "subscribe" | "ssubscribe";
  readonly unsubscribe: "unsubscribe" | "sunsubscribe";
}

const PLAIN: ChannelCommands = { publish: "publish", subscribe: "subscribe", unsubscribe: "unsubscribe" };
const SHARDED: ChannelCommands = { publish: "spublish", subscribe: "ssubscribe", unsubscribe: "sunsubscribe" };

/**
 * Sharded channels if the server has them (Redis 7), else plain ones. All processes must use the same, and do: they ask the same
 * server, again after each reconnect. Rejects if the connection is lost.
 */
export async function channelCommands(connection: Redis): Promise<ChannelCommands> {
  const [known] = (await connection.call("COMMAND", "INFO", "SSUBSCRIBE")) as unknown[];
  return known ? SHARDED : PLAIN;
}

/** The channel of a topic. The empty topic is the channel for messages to all subscriptions. */
export function channelOf(prefix: string, topic: string): string {
  return `${prefix}:bus:${topic}`;
}
