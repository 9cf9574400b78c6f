import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { Redis, type RedisOptions } from "ioredis";
import { temporaryFolder } from "./portico-process.ts";
import { freePort } from "./ports.ts";

/** The server of all test files, and a prefix that no other test uses. */
export interface RedisPlace {
  readonly url: string;
  readonly prefix: string;
}

/**
 * The server that `PORTICO_TEST_REDIS` names, or this machine's own. Every call gives another prefix. Undefined without a server:
 * tests are then skipped. If `CI` is set or the variable names a server, a missing one is an error.
 */
export async function redisPlace(): Promise<(() => RedisPlace) | undefined> {
  const named = process.env.PORTICO_TEST_REDIS;
  const url = named ?? "redis://127.0.0.1:6379";
  if (await answers(url)) return () => ({ url, prefix: `portico-test-${randomBytes(8).toString("hex")}` });
  if (!named && !process.env.CI) return undefined;
  throw new Error("No Redis server answers");
}

/** For the one test file that says it for all. */
export function sayThatRedisTestsAreSkipped(): void {
  console.warn("Tests of adapters for Redis are skipped: no server answers (PORTICO_TEST_REDIS names one)");
}

/** Whether this machine has redis-server. If `CI` is set, its absence is an error. */
export function hasRedisServer(): boolean {
  const isThere = spawnSync("redis-server", ["--version"]).error === undefined;
  if (!isThere && process.env.CI) throw new Error("CI has to have redis-server");
  return isThere;
}

/** A server of one test, which can fail. */
export interface OwnRedis extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Stop it as SIGSTOP does: connections stay, and no command is answered. */
  freeze(): void;
  thaw(): void;
  /** Lose it with all that it holds, and start an empty one on the same port, at once or when `start` is called. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Ask as a person with redis-cli would. */
  ask(...command: readonly [string, ...string[]]): Promise<unknown>;
}

/** Settings of `ownRedis`. */
export interface OwnRedisSettings {
  /** Lines of redis.conf, as arguments of redis-server. */
  readonly settings?: readonly string[];
  /** How `ask`, and the wait for the start, connect. Default: without TLS. */
  readonly connection?: RedisOptions;
}

/** Start a redis-server on a free port of this machine, without files. */
export async function ownRedis({ settings = [], connection = {} }: OwnRedisSettings = {}): Promise<OwnRedis> {
  const port = await freePort();
  const folder = temporaryFolder();
  // Settings may put another kind of listener on the port.
  const listens = settings.includes("--tls-port") ? ["--port", "0"] : ["--port", `${port}`];
  const fixed = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder.path];
  const given = settings.map((each) => each.replace("PORT", `${port}`));
  let child: ChildProcess | undefined;
  const ask = async (...[name, ...values]: readonly [string, ...string[]]): Promise<unknown> => {
    const client = new Redis({
      host: "127.0.0.1",
      port,
      ...connection,
      ...{ lazyConnect: true, retryStrategy: null, connectTimeout: 2000, commandTimeout: 2000 },
    });
    client.on("error", () => {});
    try {
      await client.connect();
      return await client.call(name, ...values);
    } finally {
      client.disconnect();
    }
  };
  const start = async (): Promise<void> => {
    child = spawn("redis-server", [...listens, ...fixed, ...given], { stdio: "ignore" });
    while (
      !(await ask("PING").then(
        () => true,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error("redis-server did not start");
      await wait(20);
    }
  };
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  await start();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    freeze: () => void child!.kill("SIGSTOP"),
    thaw: () => void child!.kill("SIGCONT"),
    kill,
    start,
    ask,
    async [Symbol.asyncDispose]() {
      await kill();
      folder.remove();
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: null, connectTimeout: 2000, commandTimeout: 2000 });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.ping()) === "PONG";
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}
