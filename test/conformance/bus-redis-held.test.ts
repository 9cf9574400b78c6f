import { EventEmitter } from "node:events";
import { Subscriber } from "@portico/cluster/bus/redis/subscriber";
import { Topics } from "@portico/adapters/bus/topics";
import { createMemoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createSystemClock, type ports } from "@portico/core";
import { expect, it } from "vitest";

/** Signatures that are never checked. */
const signing: ports.Signing = { sign: () => new Promise(() => {}), verify: () => new Promise(() => {}) };

it("holds few megabytes of messages whose signatures wait to be checked, and tells that others are lost", async () => {
  const connection = Object.assign(new EventEmitter(), { status: "wait", disconnect() {} });
  const topics = new Topics(createMemoryTelemetry().log);
  let missed = 0;
  topics.add("a", { received() {}, missed: () => missed++ });
  const given = { connection: connection as never, prefix: "p", id: "own", topics, signing, refuse() {} };
  const subscriber = new Subscriber({ ...given, clock: createSystemClock() });
  const message = "x".repeat(1024 * 1024);
  for (let sent = 0; sent < 40; sent++) connection.emit("message", "p:bus:a", message);
  await expect.poll(() => missed).toBe(8);
  subscriber.close();
});
