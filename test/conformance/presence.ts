import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** One process of an instance: an adapter, and adapters for its needs. */
export interface PresenceProcess {
  readonly adapter: Adapter<typeof ports.presence>;
  readonly others: readonly Adapter[];
}

/**
 * The law of the port `presence`, as vitest tests. `make` is called once per test: it gives processes of a new instance, each
 * with an adapter of its own.
 */
export function presenceConformance(name: string, make: () => () => PresenceProcess): void {
  describeSuite(`presence port: ${name}`, () => {
    let opened: OpenAdapter<ports.Presence>[];
    let [one, other]: ports.Presence[] = [];
    beforeEach(async () => {
      opened = [];
      const newProcess = make();
      for (let at = 0; at < 2; at++) {
        const { adapter, others } = newProcess();
        opened.push(await openAdapter(adapter, others));
      }
      [one, other] = opened.map(({ port }) => port);
    });
    afterEach(async () => {
      for (const each of opened) await each.close();
    });

    const toFind = (presence: ports.Presence, socketId: string, expected: unknown) =>
      expect.poll(() => presence.locate(socketId), { timeout: 10_000 }).toEqual(expected);

    it("finds a socket in its own process at once, and from other processes shortly after", async () => {
      one!.hold("s1", { userId: "ada", tags: ["é", null] });
      const expected = { process: one!.process, facts: { userId: "ada", tags: ["é", null] } };
      expect(await one!.locate("s1")).toEqual(expected);
      await toFind(other!, "s1", expected);
      other!.hold("s2", {});
      await toFind(one!, "s2", { process: other!.process, facts: {} });
      expect(one!.process).not.toBe(other!.process);
    });

    it("answers undefined for a socket that no process holds, with any ID", async () => {
      one!.hold("s", {});
      await toFind(other!, "s", { process: one!.process, facts: {} });
      for (const id of ["", "S", "constructor", "__proto__", "*", "s*", "\0", "\ud800", "x".repeat(10_000)]) {
        expect(await Promise.all([one!.locate(id), other!.locate(id)])).toEqual([undefined, undefined]);
      }
    });

    it("finds a socket no more after it was released, everywhere", async () => {
      for (const id of ["s1", "s2"]) one!.hold(id, {});
      await toFind(other!, "s2", { process: one!.process, facts: {} });
      one!.release("s1");
      expect(await one!.locate("s1")).toBeUndefined();
      await toFind(other!, "s1", undefined);
      await toFind(other!, "s2", { process: one!.process, facts: {} });
      one!.release("s1");
      one!.release("never held");
    });

    it("releases no socket of another process", async () => {
      one!.hold("s", {});
      await toFind(other!, "s", { process: one!.process, facts: {} });
      other!.release("s");
      other!.hold("t", {});
      await toFind(one!, "t", { process: other!.process, facts: {} });
      await toFind(other!, "s", { process: one!.process, facts: {} });
    });

    it("replaces the facts at a second call, and keeps what the caller changes afterwards out", async () => {
      const facts = { n: 1 };
      one!.hold("s", facts);
      facts.n = 2;
      expect((await one!.locate("s"))?.facts).toEqual({ n: 1 });
      one!.hold("s", { n: 3 });
      await toFind(other!, "s", { process: one!.process, facts: { n: 3 } });
    });

    it("throws TypeError for facts that are not a JSON object", () => {
      for (const facts of [null, [], "s", 1n, undefined, () => {}]) {
        expect(() => one!.hold("s", facts as unknown as object)).toThrow(TypeError);
      }
    });

    it("finds nothing of a process that closed; that process takes nothing more, and throws PresenceUnavailable", async () => {
      one!.hold("s", {});
      await toFind(other!, "s", { process: one!.process, facts: {} });
      await opened[0]!.close();
      expect(await other!.locate("s")).toBeUndefined();
      one!.hold("t", {});
      one!.release("s");
      await expect(one!.locate("t")).rejects.toThrow(ports.PresenceUnavailable);
      expect(await other!.locate("t")).toBeUndefined();
    });

    it("holds a thousand sockets", async () => {
      for (let n = 0; n < 1000; n++) one!.hold(`s${n}`, { n });
      await toFind(other!, "s999", { process: one!.process, facts: { n: 999 } });
      const found = await Promise.all(Array.from({ length: 1000 }, (_, n) => other!.locate(`s${n}`)));
      expect(found.map((each) => each?.facts["n"])).toEqual(Array.from({ length: 1000 }, (_, n) => n));
    });
  });
}
