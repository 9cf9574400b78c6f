import { defineAdapter, ports } from "@portico/core";
import { firstAttempt } from "../redis/ioredis.ts";
import { redis } from "../redis/server.ts";
import { checkTopic, toMessageText } from "@portico/adapters/bus/bus-message";
import { Publisher } from "./redis/publisher.ts";
import { Subscriber } from "./redis/subscriber.ts";
import { Topics } from "@portico/adapters/bus/topics";

/**
 * A bus over Redis publish/subscribe, in sharded channels where the server has them (Redis 7). Messages to subscriptions of the same
 * process do not need Redis. While Redis is unavailable or slow, messages to other processes are lost, and their subscriptions are told
 * later. Opening succeeds also without Redis. Messages are signed with the instance's key, and others are refused.
 */
export const redisBus = defineAdapter({
  name: "bus/redis",
  port: ports.bus,
  needs: { redis, ids: ports.ids, clock: ports.clock, telemetry: ports.telemetry, signing: ports.signing },
  async open(
    { redis: { prefix, commands, connect, refuse }, ids, clock, telemetry, signing },
    _options: void,
    scope,
  ): Promise<ports.Bus> {
    const id = ids.id("bus_");
    const { log } = telemetry;
    const topics = new Topics(log);
    let isClosed = false;
    const publisher = new Publisher({ connection: commands, prefix, id, signing, clock, log });
    const connection = connect({ connectionName: "portico-bus" });
    const subscriber = new Subscriber({ connection, prefix, id, topics, signing, clock, refuse });
    scope.onClose(() => {
      isClosed = true;
      topics.close();
      subscriber.close();
      return publisher.close();
    });
    await firstAttempt(connection);
    return {
      publish(topic, message, { toOthers = false } = {}) {
        const [name, text] = [checkTopic(topic), toMessageText(message)];
        if (isClosed) return;
        if (!toOthers) topics.tell(name, text);
        publisher.publish(name, text);
      },
      subscribe(topic, listener) {
        const name = checkTopic(topic);
        if (isClosed) return { active: Promise.resolve(false), close() {} };
        const seat = topics.add(name, listener);
        const ended = Promise.withResolvers<boolean>();
        return {
          active: Promise.race([subscriber.want(name), ended.promise]),
          close() {
            ended.resolve(false);
            topics.remove(seat);
            if (!topics.has(name)) subscriber.unwant(name);
          },
        };
      },
    };
  },
});
