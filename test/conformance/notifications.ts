import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** An adapter under test that tells everything, adapters for its needs, and what was told. */
export interface NotificationsUnderTest {
  readonly adapter: Adapter<typeof ports.notifications>;
  readonly others: readonly Adapter[];
  /** The records among the others. */
  readonly records: ports.Records;
  /** Lets some time pass in which sources are looked at. */
  pass(): Promise<void>;
  /** The kinds and data of everything that was told, in order. */
  told(): readonly { readonly kind: ports.NotificationKind; readonly data: unknown }[];
  close(): Promise<void>;
}

/** The law of the port `notifications`, as vitest tests. `make` is called once per test, and gives an empty store. */
export function notificationsConformance(name: string, make: () => Promise<NotificationsUnderTest>): void {
  describeSuite(`notifications port: ${name}`, () => {
    let subject: NotificationsUnderTest;
    let opened: OpenAdapter<ports.Notifications>;
    beforeEach(async () => {
      subject = await make();
      opened = await openAdapter(subject.adapter, subject.others);
    });
    afterEach(async () => {
      await opened.close();
      await subject.close();
    });

    const about = (id: string): ports.NotifiedSubject => ({ id, data: { id }, page: ["runs", id] });
    /** A source, and its states, which a test changes. */
    const define = (source: string, kind: ports.NotificationKind = "decision.waiting") => {
      const states: ports.NotifiedState[] = [];
      let looks = 0;
      opened.port.define({ name: source, kind, look: async () => (looks++, [...states]) });
      const looked = async () => {
        const before = looks;
        await expect.poll(async () => (await subject.pass(), looks)).toBeGreaterThan(before + 1);
      };
      return { states, looked };
    };
    const idsTold = () => subject.told().map(({ data }) => (data as { readonly id: string }).id);
    const until = (ids: readonly string[]) => expect.poll(async () => (await subject.pass(), idsTold())).toEqual(ids);

    it("tells an event when its writes are committed, and only then", async () => {
      opened.port.writes("run.failed", about("never"));
      await subject.records.batch(opened.port.writes("run.failed", about("one")));
      await until(["one"]);
      expect(subject.told()[0]).toMatchObject({ kind: "run.failed", data: { id: "one" } });
    });

    it("tells an event once that is written twice before it was told", async () => {
      const writes = () => opened.port.writes("run.failed", about("one"));
      await subject.records.batch([...writes(), ...writes()]);
      const control = define("control");
      await control.looked();
      control.states.push(about("later"));
      await until(["one", "later"]);
    });

    it("tells a state once while it lasts, and again after a look that did not find it", async () => {
      const { states, looked } = define("waiting");
      states.push(about("one"));
      await until(["one"]);
      await looked();
      expect(idsTold()).toEqual(["one"]);
      states.splice(0);
      await looked();
      states.push(about("one"));
      await until(["one", "one"]);
    });

    it("tells states of two sources, also with the same id", async () => {
      define("first").states.push(about("same"));
      define("second", "limit.near").states.push(about("same"));
      await until(["same", "same"]);
    });

    it("looks at a source again that has thrown, and at the others", async () => {
      let failures = 0;
      opened.port.define({
        name: "broken",
        kind: "limit.near",
        look: async () => {
          if (failures++ === 0) throw new Error("away");
          return [about("mended")];
        },
      });
      await until(["mended"]);
    });

    it("gives the thresholds to sources", async () => {
      const { promise, resolve } = Promise.withResolvers<ports.NotificationThresholds>();
      opened.port.define({ name: "asked", kind: "limit.near", look: async (given) => (resolve(given), []) });
      await expect.poll(async () => (await subject.pass(), Promise.race([promise, Promise.resolve(undefined)]))).toBeDefined();
      const { scheduleFailures, decisionMs, limitShare } = await promise;
      expect([scheduleFailures > 0, decisionMs >= 0, limitShare > 0 && limitShare <= 1]).toEqual([true, true, true]);
    });

    it("refuses a second source with the same name", () => {
      define("twice");
      expect(() => define("twice")).toThrow(TypeError);
    });
  });
}
