import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { redisBus } from "@portico/cluster/bus/redis";
import { bullmqEngine, type BullmqEngineOptions } from "@portico/cluster/engine/bullmq";
import { postgresLog } from "@portico/cluster/log/postgres";
import { redisPresence } from "@portico/cluster/presence/redis";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, type App, createSystemClock, Secret } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import { startBalancer } from "./balancer.ts";
import { type MemberPlace, memberPlaceOf } from "./member-place.ts";
import { portOfMembers } from "./port-of-members.ts";
import { openTcpLine, type TcpLine } from "./tcp-line.ts";

/** Whether each service under test is a cluster: `npm run test:cluster`. */
export const isClusterRun = process.env["PORTICO_TEST_PRESET"] === "cluster";

const COUNT = 3;
/** PostgreSQL allows 100 connections by default, and several test files run at the same time. */
const POOL_SIZE = 2;

/** The instance key of all clusters of tests. */
const INSTANCE_KEY = new Secret(Buffer.alloc(32, 7).toString("base64url"));

/** The app of a service under test, or the apps of the members of a cluster. */
export interface Members {
  readonly apps: readonly App[];
  /** The first app. Its `close` closes all of them. A test's replacement of a port's method is set in all of them. */
  readonly app: App;
  close(): Promise<void>;
}

/** How a service under test is opened. */
export interface MembersOptions {
  /** Services of one directory have the same stores. */
  readonly dataDir: string;
  /** The stores and the engine on one machine. */
  readonly stores: () => readonly Adapter[];
  /** Of the engine of a cluster; `none`: the service needs no engine. */
  readonly engine?: BullmqEngineOptions | "none";
  /** Whether the first member executes all work of a cluster. Default: false, all do. */
  readonly isOneExecuting?: boolean;
  /** Open one app with these stores. */
  open(stores: readonly Adapter[]): Promise<App>;
}

/**
 * Open the app of a service under test. In a run of the suites on a cluster: three apps that share PostgreSQL and Redis, each with its own
 * connections. A second service of the same directory continues after a crash: the living members of the first are killed.
 */
export async function openMembers({
  dataDir,
  stores,
  engine = {},
  isOneExecuting = false,
  open,
}: MembersOptions): Promise<Members> {
  if (!isClusterRun) return openMember(stores(), open);
  const place = await memberPlaceOf(dataDir);
  place.kill();
  const opened = await Promise.allSettled(
    Array.from({ length: COUNT }, (_, at) => startMember(place, executing(engine, !isOneExecuting || at === 0), open)),
  );
  const members = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= closeMembers(place, members));
  const failed = opened.find((each) => each.status === "rejected");
  if (failed) {
    await close();
    throw failed.reason;
  }
  place.kill = () => {
    for (const { lines } of members) for (const line of lines) line.cut();
  };
  const apps = members.map(({ app }) => app);
  return { apps, app: { ...apps[0]!, port: portOfMembers(apps), close, [Symbol.asyncDispose]: close }, close };
}

function executing(engine: NonNullable<MembersOptions["engine"]>, executes: boolean): NonNullable<MembersOptions["engine"]> {
  return engine === "none" ? engine : { ...engine, executes };
}

/** Open the only app of a service. */
export async function openMember(stores: readonly Adapter[], open: MembersOptions["open"]): Promise<Members> {
  const app = await open(stores);
  return { apps: [app], app, close: () => app.close() };
}

/** The telemetry of one member: all write to the same one, and each has its own gauges. */
export function memberTelemetry(telemetry: MemoryTelemetry): Adapter {
  return memoryTelemetry({ telemetry: isClusterRun ? { ...telemetry, gauge: createMemoryTelemetry().gauge } : telemetry });
}

interface LivingMember {
  readonly app: App;
  /** Its connections to PostgreSQL and Redis: without them, it is dead for the others. */
  readonly lines: readonly TcpLine[];
}

async function startMember(
  place: MemberPlace,
  engine: NonNullable<MembersOptions["engine"]>,
  open: MembersOptions["open"],
): Promise<LivingMember> {
  const [postgresUrl, postgres] = await lineTo(place.postgresUrl, 5432);
  const [redisUrl, redis] = await lineTo(place.redis.url, 6379);
  const lines = [postgres, redis];
  try {
    const app = await open([
      postgresRecords({ url: postgresUrl, schema: place.schema, poolSize: POOL_SIZE }),
      recordSecrets({ key: INSTANCE_KEY }),
      ...(engine === "none" ? [] : sharedWork({ url: redisUrl, prefix: place.redis.prefix }, engine)),
    ]);
    place.members++;
    return { app, lines };
  } catch (error) {
    await Promise.all(lines.map((line) => line[Symbol.asyncDispose]()));
    throw error;
  }
}

function sharedWork(redis: { readonly url: string; readonly prefix: string }, engine: BullmqEngineOptions): readonly Adapter[] {
  return [
    postgresLog({}),
    ioredisServer({ ...redis, commandTimeoutMs: 2000 }),
    onRealTime(withOwnSigning(redisBus())),
    onRealTime(withOwnSigning(redisPresence({}))),
    bullmqEngine(engine),
  ];
}

/** Redis and disks have clocks of their own. Their adapters have the real clock, also in services whose clock a test moves. */
export function onRealTime<A extends Adapter>({ name, spec, options }: A): Adapter {
  const { clock: _, ...needs } = spec.needs;
  const open: typeof spec.open = (given, ...rest) => spec.open({ ...given, clock: createSystemClock() }, ...rest);
  return { name, spec: { ...spec, needs, open }, options };
}

/** Adapters that sign, also in services without the port, or with another key. */
export function withOwnSigning<A extends Adapter>({ name, spec, options }: A): Adapter {
  const { signing: _, ...needs } = spec.needs;
  const signer = hmacSigning({ key: new Secret("a key of Redis") });
  const open: typeof spec.open = async (given, own, scope) =>
    spec.open({ ...given, signing: await signer.spec.open({}, signer.options, scope) }, own, scope);
  return { name, spec: { ...spec, needs, open }, options };
}

async function lineTo(url: string, defaultPort: number): Promise<readonly [string, TcpLine]> {
  const far = new URL(url);
  const line = await openTcpLine(Number(far.port || defaultPort));
  [far.hostname, far.port] = ["127.0.0.1", String(line.port)];
  return [far.href, line];
}

async function closeMembers(place: MemberPlace, members: readonly LivingMember[]): Promise<void> {
  const closed = await Promise.allSettled(
    members.map(async ({ app, lines }) => {
      // Killed members close as processes do that come back and find that they lost their lease.
      for (const line of lines) line.heal();
      await app.close().finally(() => Promise.all(lines.map((line) => line[Symbol.asyncDispose]())));
    }),
  );
  place.members -= members.length;
  const failed = closed.find((each) => each.status === "rejected");
  if (failed) throw failed.reason;
}

/** The listener of a surface of a service under test. */
export interface ServedMembers {
  readonly url: string;
  /** Accept no more connections. */
  stop(): void;
  /** End the connections. */
  end(): Promise<void>;
}

/** Listen for one surface, on a port per member. Behind a balancer that sends each request to the next member, if there are several. */
export async function serveMembers(
  { apps }: Members,
  name: string,
  { hasRealtime = false }: { readonly hasRealtime?: boolean } = {},
): Promise<ServedMembers> {
  const servers = await Promise.all(
    apps.map(async (app) => {
      const surface = app.surface(name);
      const server = createServer(toNodeHandler(surface)).listen(0, "127.0.0.1");
      await once(server, "listening");
      if (hasRealtime) attach(server, surface);
      return server;
    }),
  );
  const urls = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const balancer = urls.length > 1 ? await startBalancer(urls) : undefined;
  return {
    url: balancer?.url ?? urls[0]!,
    stop() {
      for (const server of servers) server.close();
    },
    async end() {
      for (const server of servers) server.closeAllConnections();
      await balancer?.[Symbol.asyncDispose]();
    },
  };
}
