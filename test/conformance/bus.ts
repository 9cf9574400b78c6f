import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** One process of an instance: an adapter, and adapters for its needs. */
export interface BusProcess {
  readonly adapter: Adapter<typeof ports.bus>;
  readonly others: readonly Adapter[];
}

/** What one subscription heard. */
interface Heard {
  readonly told: unknown[];
  missed: number;
  readonly subscription: ports.BusSubscription;
}

/**
 * The law of the port `bus`, as vitest tests. `make` is called once per test: it gives processes of a new instance, each with an
 * adapter of its own.
 */
export function busConformance(name: string, make: () => () => BusProcess): void {
  describeSuite(`bus port: ${name}`, () => {
    let opened: OpenAdapter<ports.Bus>[];
    let open: () => Promise<ports.Bus>;
    let [one, other]: ports.Bus[] = [];
    beforeEach(async () => {
      opened = [];
      const newProcess = make();
      open = async () => {
        const { adapter, others } = newProcess();
        opened.push(await openAdapter(adapter, others));
        return opened.at(-1)!.port;
      };
      [one, other] = [await open(), await open()];
    });
    afterEach(async () => {
      for (const each of opened) await each.close();
    });

    const hear = async (bus: ports.Bus, topic: string): Promise<Heard> => {
      const told: unknown[] = [];
      const heard = {
        told,
        missed: 0,
        subscription: bus.subscribe(topic, {
          received: (message) => void told.push(message),
          missed: () => void heard.missed++,
        }),
      };
      expect(await heard.subscription.active).toBe(true);
      return heard;
    };
    const toHear = (heard: Heard, messages: readonly unknown[]) =>
      vi.waitFor(() => expect(heard.told).toEqual(messages), { timeout: 10_000 });

    it("tells a message to every subscription of its topic, in every process, and to no other topic's", async () => {
      const heard = await Promise.all([hear(one!, "a"), hear(one!, "a"), hear(other!, "a")]);
      const elsewhere = await Promise.all([hear(one!, "A"), hear(other!, "a/b")]);
      one!.publish("a", { n: 1 });
      for (const each of heard) await toHear(each, [{ n: 1 }]);
      other!.publish("a", { n: 2 });
      for (const each of heard) await toHear(each, [{ n: 1 }, { n: 2 }]);
      one!.publish("A", "end");
      other!.publish("a/b", "end");
      for (const each of elsewhere) await toHear(each, ["end"]);
      expect([...heard, ...elsewhere].map(({ missed }) => missed)).toEqual([0, 0, 0, 0, 0]);
    });

    it("tells messages of each publisher in order, each once, over all topics of a listener", async () => {
      const told: (readonly [from: string, n: number])[] = [];
      const listener = { received: (message: unknown) => void told.push(message as [string, number]), missed() {} };
      for (const topic of ["a", "b"]) expect(await other!.subscribe(topic, listener).active).toBe(true);
      for (let n = 0; n < 500; n++) {
        one!.publish(n % 3 === 0 ? "a" : "b", ["one", n]);
        other!.publish(n % 2 === 0 ? "a" : "b", ["other", n]);
        if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await vi.waitFor(() => expect(told).toHaveLength(1000), { timeout: 10_000 });
      const order = Array.from({ length: 500 }, (_, n) => n);
      for (const from of ["one", "other"]) expect(told.filter((each) => each[0] === from).map((each) => each[1])).toEqual(order);
    });

    it("never tells within the call, and keeps what the publisher changes afterwards out", async () => {
      const heard = await hear(one!, "a");
      const message = { list: [1] };
      one!.publish("a", message);
      expect(heard.told).toEqual([]);
      message.list.push(2);
      await toHear(heard, [{ list: [1] }]);
    });

    it("carries any JSON, and any text", async () => {
      const heard = await hear(other!, "a");
      const messages = [null, false, 0, "", "\0\n\r\u2028é\u{1d49c}", [], {}, { deep: [{ a: ["\ud800"] }] }, 1e300];
      for (const message of messages) one!.publish("a", message);
      await toHear(heard, messages);
    });

    it("takes any topic of 1-512 well-formed characters without U+0000, and no other", async () => {
      const topics = ["a b\r\nc", "*", "[a]", "é/\u{1d49c}", "x".repeat(512), "{a}", "constructor"];
      const heard = await Promise.all(topics.map((topic) => hear(other!, topic)));
      for (const topic of topics) one!.publish(topic, topic);
      for (const [at, each] of heard.entries()) await toHear(each, [topics[at]]);
      for (const topic of ["", "\0", "\ud800", "x".repeat(513), undefined as unknown as string]) {
        expect(() => one!.publish(topic, 1)).toThrow(TypeError);
        expect(() => one!.subscribe(topic, { received() {}, missed() {} })).toThrow(TypeError);
      }
    });

    it("leaves out the subscriptions of the publisher's process if told so", async () => {
      const heard = [await hear(one!, "a"), await hear(other!, "a")];
      one!.publish("a", 1, { toOthers: true });
      one!.publish("a", 2, {});
      await toHear(heard[0]!, [2]);
      await toHear(heard[1]!, [1, 2]);
    });

    it("throws TypeError for a message that JSON cannot represent, without its content", async () => {
      await hear(other!, "a");
      const circle: Record<string, unknown> = { secret: "correct-horse" };
      circle["self"] = circle;
      const hostile = {
        toJSON() {
          throw new Error("correct-horse");
        },
      };
      for (const message of [undefined, () => {}, 1n, circle, hostile]) {
        expect(() => one!.publish("a", message)).toThrow(TypeError);
        expect(() => one!.publish("a", message)).not.toThrow("correct-horse");
      }
    });

    it("carries a message of the maximum size, and loses a larger one, which subscribers are told", async () => {
      const heard = await Promise.all([hear(one!, "a"), hear(other!, "a")]);
      const elsewhere = await hear(other!, "b");
      const largest = "é".repeat((ports.BUS_MESSAGE_BYTES - 2) / 2);
      one!.publish("a", largest);
      for (const { told } of heard) await vi.waitFor(() => expect(told[0] === largest).toBe(true), { timeout: 10_000 });
      one!.publish("a", `${largest}x`);
      one!.publish("a", "next");
      for (const each of heard) {
        await vi.waitFor(() => expect([each.told.length, each.told[1], each.missed]).toEqual([2, "next", 1]), 10_000);
      }
      one!.publish("b", "next");
      await toHear(elsewhere, ["next"]);
      expect(elsewhere.missed).toBe(0);
    });

    it("keeps nothing for later subscriptions", async () => {
      const before = await hear(other!, "a");
      one!.publish("a", 1);
      await toHear(before, [1]);
      const [after, there] = [await hear(other!, "a"), await hear(one!, "a")];
      one!.publish("a", 2);
      for (const each of [after, there]) await toHear(each, [2]);
    });

    it("tells nothing after a subscription was closed, and others of its topic go on", async () => {
      const [closed, stays] = [await hear(other!, "a"), await hear(other!, "a")];
      one!.publish("a", 1);
      await toHear(closed, [1]);
      closed.subscription.close();
      closed.subscription.close();
      one!.publish("a", 2);
      await toHear(stays, [1, 2]);
      stays.subscription.close();
      // Closed and opened again without a pause: what the closing still has to do does not end the new one.
      const again = await hear(other!, "a");
      one!.publish("a", 3);
      await toHear(again, [3]);
      expect([closed.told, stays.told]).toEqual([[1], [1, 2]]);
    });

    it("does not call a listener that closed its subscription a moment before", async () => {
      const told: unknown[] = [];
      const subscription = one!.subscribe("a", {
        received(message) {
          told.push(message);
          subscription.close();
        },
        missed() {},
      });
      await subscription.active;
      const last = await hear(one!, "a");
      for (const n of [1, 2]) one!.publish("a", n);
      await toHear(last, [1, 2]);
      expect(told).toEqual([1]);
    });

    it("tells other listeners, and later messages, after a listener threw or rejected", async () => {
      const thrown: unknown[] = [];
      const throwing = one!.subscribe("a", {
        received(message) {
          thrown.push(message);
          throw new Error("This listener fails");
        },
        missed() {},
      });
      const rejecting = one!.subscribe("a", {
        received: () => Promise.reject(new Error("This listener fails later")),
        missed() {},
      });
      await Promise.all([throwing.active, rejecting.active]);
      const heard = await hear(one!, "a");
      for (const n of [1, 2]) one!.publish("a", n);
      await toHear(heard, [1, 2]);
      expect(thrown).toEqual([1, 2]);
    });

    it("answers whether a subscription that was closed at once was active", async () => {
      const subscription = one!.subscribe("a", { received() {}, missed() {} });
      subscription.close();
      expect([true, false]).toContain(await subscription.active);
    });

    it("after closing tells nothing, takes messages without an error, and activates no subscription", async () => {
      const [gone, stays] = [await hear(one!, "a"), await hear(other!, "a")];
      await opened[0]!.close();
      one!.publish("a", "lost");
      other!.publish("a", 1);
      await toHear(stays, [1]);
      expect(gone.told).toEqual([]);
      const late = one!.subscribe("a", { received() {}, missed() {} });
      expect(await late.active).toBe(false);
      late.close();
    });

    it("reaches processes that open later", async () => {
      const heard = await hear(one!, "a");
      const third = await open();
      third.publish("a", 1);
      await toHear(heard, [1]);
    });
  });
}
