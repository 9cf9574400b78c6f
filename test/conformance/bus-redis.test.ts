import { redisBus } from "@portico/cluster/bus/redis";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { ioredisServer, type IoredisServerOptions } from "@portico/cluster/redis/ioredis";
import { toSigned } from "@portico/cluster/redis/signed-text";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type ports, Secret } from "@portico/core";
import { afterEach, describe, expect, it } from "vitest";
import { refusingPort } from "../harness/ports.ts";
import { hasRedisServer, type OwnRedis, ownRedis, redisPlace, sayThatRedisTestsAreSkipped } from "../harness/redis.ts";
import { busConformance } from "./bus.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const newPlace = await redisPlace();
if (!newPlace) sayThatRedisTestsAreSkipped();

const KEY = new Secret("a key of this test");

/** One process's adapters. */
function processOf(options: IoredisServerOptions, telemetry = createMemoryTelemetry()) {
  return {
    adapter: redisBus(),
    others: [ioredisServer(options), hmacSigning({ key: KEY }), randomIds(), systemClock(), memoryTelemetry({ telemetry })],
  };
}

if (newPlace) {
  busConformance("redis", () => {
    const place = newPlace();
    return () => processOf(place);
  });
}

describe.skipIf(!hasRedisServer())("bus/redis on a server that fails", () => {
  const opened: OpenAdapter<ports.Bus>[] = [];
  const servers: OwnRedis[] = [];
  const open = async (options: IoredisServerOptions, telemetry = createMemoryTelemetry()): Promise<ports.Bus> => {
    const { adapter, others } = processOf({ commandTimeoutMs: 500, ...options }, telemetry);
    opened.push(await openAdapter(adapter, others));
    return opened.at(-1)!.port;
  };
  const serve = async (settings: readonly string[] = []): Promise<OwnRedis> => {
    servers.push(await ownRedis({ settings }));
    return servers.at(-1)!;
  };
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
    for (const each of servers.splice(0)) await each[Symbol.asyncDispose]();
  });

  /** What a subscription heard: messages, and `missed`. */
  const hear = async (bus: ports.Bus, topic = "a"): Promise<unknown[]> => {
    const heard: unknown[] = [];
    const listener = { received: (message: unknown) => void heard.push(message), missed: () => void heard.push("missed") };
    expect(await bus.subscribe(topic, listener).active).toBe(true);
    return heard;
  };
  /** An envelope `ID SEQUENCE MESSAGE` as a process signs it for a topic. */
  const sign = async (topic: string, envelope: string, key = KEY, at = Date.now()): Promise<string> => {
    const { port: signing, close } = await openAdapter(hmacSigning({ key }));
    const wire = envelope.replace(/^(\w+ \d+) /, `$1 ${at} `);
    return toSigned(signing, `portico:bus:${topic}`, wire).finally(close);
  };
  const publish = (server: OwnRedis, topic: string, text: string) => server.ask("SPUBLISH", `portico:bus:${topic}`, text);
  /** Publishes until a message arrives, after everything that arrived before it. */
  const untilCarried = async (from: ports.Bus, heard: readonly unknown[], mark: string, topic = "a") => {
    await expect
      .poll(() => {
        from.publish(topic, mark);
        return heard.includes(mark);
      })
      .toBe(true);
  };

  it("uses plain channels where the server has no sharded ones", async () => {
    const names = ["SSUBSCRIBE", "SUNSUBSCRIBE", "SPUBLISH"];
    const { url } = await serve(names.flatMap((name) => ["--rename-command", name, ""]));
    const [one, other] = [await open({ url }), await open({ url })];
    const heard = await hear(other);
    one.publish("a", 1);
    await expect.poll(() => heard).toEqual([1]);
  });

  it("tells subscriptions that they missed messages after Redis was killed and an empty one took its place", async () => {
    const server = await serve();
    const telemetry = createMemoryTelemetry();
    const [one, other] = [await open({ url: server.url }, telemetry), await open({ url: server.url })];
    const [heard, own] = [await hear(other), await hear(one)];
    await server.kill();
    // Neither throws nor waits, and reaches this process.
    await expect.poll(() => telemetry.lines.map(({ message }) => message)).toContain("Redis is unavailable");
    one.publish("a", "meanwhile");
    await expect.poll(() => own).toContain("meanwhile");
    await server.start();
    await expect.poll(() => heard).toContain("missed");
    await untilCarried(one, heard, "again");
    expect(heard).not.toContain("meanwhile");
    await expect.poll(() => telemetry.lines.map(({ message }) => message)).toContain("Redis is available again");
  });

  it("tells a subscription whose own connection stayed that a publisher lost messages", async () => {
    const server = await serve();
    const [one, other] = [await open({ url: server.url }), await open({ url: server.url })];
    const [heard, elsewhere] = [await hear(other, "a"), await hear(other, "b")];
    // Refuses commands of all connections for a while, and ends none.
    await server.ask("ACL", "SETUSER", "default", "-spublish");
    one.publish("a", "lost");
    await expect.poll(() => server.ask("ACL", "LOG")).toEqual(expect.objectContaining({ length: 1 }));
    await server.ask("ACL", "SETUSER", "default", "+spublish");
    await expect.poll(() => heard).toEqual(["missed"]);
    await untilCarried(one, elsewhere, "next", "b");
    expect(elsewhere).not.toContain("missed");
  });

  it("tells a subscription that it missed messages after its own connection was lost", async () => {
    const server = await serve();
    const [one, other] = [await open({ url: server.url }), await open({ url: server.url })];
    const [heard, closed] = [await hear(other, "a"), await hear(other, "b")];
    const subscription = other.subscribe("b", { received() {}, missed() {} });
    await subscription.active;
    await server.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await expect.poll(() => heard).toEqual(["missed"]);
    await expect.poll(() => closed).toEqual(["missed"]);
    await untilCarried(one, heard, "next");
  });

  it("drops messages that come after later ones of their publisher, and what is not a message", async () => {
    const server = await serve();
    const heard = await hear(await open({ url: server.url }));
    const arriving = ['p 2 "second"', 'p 1 "late"', 'p 2 "again"', 'q 1 "of another"', "junk", "", "p 3 ", 'p 4 "last"'];
    for (const wire of arriving) await publish(server, "a", await sign("a", wire));
    await expect.poll(() => heard).toEqual(["second", "of another", "missed", "last"]);
  });

  it("refuses, counts and logs once what no process of its instance signed for the topic", async () => {
    const server = await serve();
    const telemetry = createMemoryTelemetry();
    const bus = await open({ url: server.url }, telemetry);
    const heard = await hear(bus);
    const refused = [
      'p 1 "in the form of an envelope"',
      "p 1 {",
      "",
      await sign("b", 'p 1 "of another topic"'),
      await sign("a", 'p 1 "of another instance"', new Secret("another key")),
      (await sign("a", 'p 1 "changed"')).replace("changed", "CHANGED"),
      await sign("a", `p 1 "${"x".repeat(2 * 1024 * 1024)}"`),
      await sign("a", 'old 1 "of a process that ended long ago"', KEY, Date.now() - 3 * 60 * 60 * 1000),
    ];
    for (const text of refused) await publish(server, "a", text);
    for (const text of refused) await publish(server, "", text);
    await publish(server, "a", await sign("a", "p 2 is signed, and is not JSON"));
    await publish(server, "a", await sign("a", 'p 3 "of this instance"'));
    await expect.poll(() => heard).toEqual(["of this instance"]);
    const counted = (await telemetry.readGauges())["portico_redis_refused_texts"];
    expect(counted?.find(({ labels }) => labels.use === "bus")?.value).toBe(2 * refused.length);
    expect(telemetry.lines.map(({ level, message }) => [level, message])).toEqual([
      ["warn", "Refused a text in Redis that this instance did not write"],
      ["error", "A message of the bus is not JSON"],
    ]);
    expect(JSON.stringify(telemetry.lines)).not.toContain("another");
  });

  it("answers publishers at once and holds few messages while Redis does not answer", async () => {
    const server = await serve();
    const patient = { url: server.url, commandTimeoutMs: 30_000 };
    const [one, other] = [await open(patient), await open(patient)];
    const heard = await hear(other);
    server.freeze();
    const message = "x".repeat(100_000);
    for (let n = 0; n < 1000; n++) {
      one.publish("a", message);
      if (n % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    server.thaw();
    await expect.poll(() => heard).toContain("missed");
    await untilCarried(one, heard, "again");
    // At most 8 MiB were on their way, and 8 MiB waited.
    expect(heard.filter((each) => each === message).length).toBeLessThan(170);
  });

  it("goes on after Redis did not answer for longer than the timeout, in order and without repetitions", async () => {
    const server = await serve();
    const [one, other] = [await open({ url: server.url }), await open({ url: server.url })];
    const heard = await hear(other);
    let n = 0;
    const publishing = setInterval(() => one.publish("a", n++), 1);
    await expect.poll(() => heard.length).toBeGreaterThan(20);
    server.freeze();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    server.thaw();
    await expect.poll(() => heard).toContain("missed");
    const soFar = n;
    await expect.poll(() => heard.at(-1)).toBeGreaterThan(soFar);
    clearInterval(publishing);
    const numbers = heard.filter((each) => typeof each === "number");
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
  });

  it("is not disturbed when Redis is wiped", async () => {
    const server = await serve();
    const [one, other] = [await open({ url: server.url }), await open({ url: server.url })];
    const heard = await hear(other);
    await server.ask("FLUSHALL");
    one.publish("a", 1);
    await expect.poll(() => heard).toEqual([1]);
  });

  it("opens without Redis, and activates subscriptions when it comes", async () => {
    const server = await serve();
    await server.kill();
    const [one, other] = [await open({ url: server.url }), await open({ url: server.url })];
    const heard: unknown[] = [];
    const subscription = other.subscribe("a", { received: (message) => void heard.push(message), missed() {} });
    const closed = other.subscribe("b", { received() {}, missed() {} });
    other.publish("a", "own");
    await expect.poll(() => heard).toEqual(["own"]);
    closed.close();
    expect(await closed.active).toBe(false);
    await server.start();
    expect(await subscription.active).toBe(true);
    await untilCarried(one, heard, "first");
  });

  it("closes while Redis is away, and while it does not answer", async () => {
    const server = await serve();
    const one = await open({ url: server.url });
    server.freeze();
    one.publish("a", 1);
    const waiting = one.subscribe("a", { received() {}, missed() {} });
    await opened.pop()!.close();
    expect(await waiting.active).toBe(false);
    await using refusing = await refusingPort();
    await open({ url: `redis://127.0.0.1:${refusing.port}` });
    await opened.pop()!.close();
  });
});
