// Nothing here runs: `npm run types` compiles it. How the page of the bus lists the adapters for Redis.
import { redisBus } from "@portico/cluster/bus/redis";
import { redisPresence } from "@portico/cluster/presence/redis";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { type Adapter, Secret } from "@portico/core";

declare const ca: string;

export const adapters: readonly Adapter[] = [
  ioredisServer({ url: new Secret("rediss://portico:PASSWORD@redis.internal:6379/0"), prefix: "portico", tls: { ca } }),
  redisBus(),
  redisPresence({}),
  hmacSigning({ key: new Secret("…") }),
];
