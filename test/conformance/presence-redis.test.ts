import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { redisPresence } from "@portico/cluster/presence/redis";
import { ioredisServer, type IoredisServerOptions } from "@portico/cluster/redis/ioredis";
import { toSigned } from "@portico/cluster/redis/signed-text";
import { hmacSigning, type HmacSigningOptions, type SigningRotation } from "@portico/adapters/signing/hmac";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createLive, ports, Secret } from "@portico/core";
import { afterEach, describe, expect, it } from "vitest";
import { hasRedisServer, type OwnRedis, ownRedis, redisPlace } from "../harness/redis.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";
import { presenceConformance } from "./presence.ts";

const newPlace = await redisPlace();

const KEY = new Secret("a key of this test");

/** One process's adapters. */
function processOf(
  options: IoredisServerOptions,
  lifetimeMs?: number,
  {
    telemetry = createMemoryTelemetry(),
    ...signing
  }: Partial<HmacSigningOptions> & { readonly telemetry?: MemoryTelemetry } = {},
) {
  const { key = KEY } = signing;
  return {
    adapter: redisPresence(lifetimeMs === undefined ? {} : { lifetimeMs }),
    others: [
      ioredisServer(options),
      hmacSigning({ ...signing, key }),
      randomIds(),
      systemClock(),
      memoryTelemetry({ telemetry }),
    ],
  };
}

if (newPlace) {
  presenceConformance("redis", () => {
    const place = newPlace();
    return () => processOf(place);
  });
}

describe.skipIf(!hasRedisServer())("presence/redis on a server of its own", () => {
  const opened: OpenAdapter<ports.Presence>[] = [];
  let server: OwnRedis;
  const open = async (lifetimeMs?: number, more: Parameters<typeof processOf>[2] = {}): Promise<ports.Presence> => {
    const { adapter, others } = processOf({ url: server.url, commandTimeoutMs: 500 }, lifetimeMs, more);
    opened.push(await openAdapter(adapter, others));
    return opened.at(-1)!.port;
  };
  const start = async (): Promise<void> => {
    server = await ownRedis();
  };
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
    await server[Symbol.asyncDispose]();
  });
  const toFind = (presence: ports.Presence, socketId: string, process: string | undefined) =>
    expect
      .poll(() =>
        presence.locate(socketId).then(
          (found) => found?.process,
          (error: unknown) => error,
        ),
      )
      .toBe(process);

  it("finds sockets again after Redis was wiped, and leaves out what was released meanwhile", async () => {
    await start();
    const [one, other] = [await open(1000), await open(1000)];
    for (const id of ["s1", "s2"]) one.hold(id, { id });
    await toFind(other, "s2", one.process);
    await server.ask("FLUSHALL");
    one.release("s1");
    await toFind(other, "s2", one.process);
    expect(await other.locate("s1")).toBeUndefined();
  });

  it("finds sockets again after Redis was replaced by an empty one, and tells when the registry cannot be read", async () => {
    await start();
    const [one, other] = [await open(), await open()];
    for (const id of ["s1", "s2"]) one.hold(id, {});
    await toFind(other, "s2", one.process);
    await server.kill();
    await expect.poll(() => other.locate("s1").catch((error: unknown) => error)).toBeInstanceOf(ports.PresenceUnavailable);
    one.release("s1");
    one.hold("s3", { n: 3 });
    expect((await one.locate("s3"))?.facts).toEqual({ n: 3 });
    await server.start();
    for (const id of ["s2", "s3"]) await toFind(other, id, one.process);
    expect(await other.locate("s1")).toBeUndefined();
  });

  it("finds sockets again after Redis did not answer for longer than their lifetime", async () => {
    await start();
    const [one, other] = [await open(300), await open(300)];
    one.hold("s", {});
    await toFind(other, "s", one.process);
    server.freeze();
    await expect(other.locate("s")).rejects.toThrow(ports.PresenceUnavailable);
    server.thaw();
    await toFind(other, "s", one.process);
  });

  it("keeps sockets for longer than their lifetime while their process lives, and forgets them when it is gone", async () => {
    await start();
    const [one, other] = [await open(300), await open(300)];
    one.hold("s", {});
    await toFind(other, "s", one.process);
    // What a process leaves that was killed: nothing extends it.
    const { port: signing } = await openAdapter(hmacSigning({ key: KEY }));
    const facts = await toSigned(signing, "portico:presence:sockets:proc_dead dead", "{}");
    await server.ask("HSET", "portico:presence:sockets:proc_dead", "dead", facts);
    await server.ask("PEXPIRE", "portico:presence:sockets:proc_dead", "300");
    await server.ask("SADD", "portico:presence:processes", "proc_dead");
    await toFind(other, "dead", "proc_dead");
    await toFind(other, "dead", undefined);
    await expect.poll(() => server.ask("SMEMBERS", "portico:presence:processes")).toEqual([one.process]);
    expect((await other.locate("s"))?.process).toBe(one.process);
  });

  it("does not believe facts that no process of its instance signed for the socket, and counts them", async () => {
    await start();
    const telemetry = createMemoryTelemetry();
    const [one, other] = [await open(), await open(undefined, { telemetry })];
    one.hold("s", { userId: "one" });
    await toFind(other, "s", one.process);
    const sockets = `portico:presence:sockets:${one.process}`;
    const signed = (await server.ask("HGET", sockets, "s")) as string;
    const written = {
      unsigned: '{"userId":"owner"}',
      junk: "{",
      copied: signed,
      changed: signed.replace("one", "two"),
      large: "x".repeat(2_000_000),
    };
    await server.ask("HSET", sockets, ...Object.entries(written).flat());
    for (const id of Object.keys(written)) expect([id, await other.locate(id)]).toEqual([id, undefined]);
    expect((await other.locate("s"))?.facts).toEqual({ userId: "one" });
    const counted = (await telemetry.readGauges())["portico_redis_refused_texts"];
    // What is too large is not read.
    expect(counted?.find(({ labels }) => labels.use === "presence")?.value).toBe(4);
    expect(telemetry.lines.map(({ message }) => message)).toEqual(["Refused a text in Redis that this instance did not write"]);
  });

  it("signs its sockets again after the key was replaced", async () => {
    await start();
    const next = new Secret("the next key");
    const rotation = createLive<SigningRotation>({ key: KEY, overlapMs: 0 });
    const one = await open(1000, { rotation });
    one.hold("s", {});
    await toFind(await open(), "s", one.process);
    await rotation.replace({ key: next, overlapMs: 0 });
    await toFind(await open(1000, { key: next }), "s", one.process);
  });

  it("leaves nothing in Redis after closing", async () => {
    await start();
    const one = await open();
    one.hold("s", {});
    await expect.poll(() => server.ask("DBSIZE")).toBe(2);
    await opened.pop()!.close();
    expect(await server.ask("DBSIZE")).toBe(0);
  });
});
