import { type Adapter, ports, ServiceError } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { openAdapter } from "./open-adapter.ts";

/** The adapter under test, over stores that the test sees, too. */
export interface AuditSubject {
  readonly adapter: Adapter<typeof ports.audit>;
  /** Adapters that fill what the adapter needs, except `records`. */
  readonly others: readonly Adapter[];
  /** The records of the app, empty. The suite opens them once, and gives them to the adapter. */
  readonly records: Adapter<typeof ports.records>;
  /** Lets this much time pass for the adapter. */
  readonly pass: (ms: number) => Promise<void>;
  /** The time that the adapter sees. */
  readonly now: () => number;
}

const DAY_MS = 24 * 60 * 60_000;
const who: ports.AuditActor = { role: "owner", userId: "ada", tokenId: "token_1", address: "192.0.2.1" };
const fact = (action: string, more: Partial<ports.AuditFact> = {}): ports.AuditFact => ({ action, who, ...more });

/** The law of the port `audit`, as vitest tests. `make` is called once per test. */
export function auditConformance(name: string, make: () => AuditSubject | Promise<AuditSubject>): void {
  describeSuite(`audit port: ${name}`, () => {
    let subject: AuditSubject;
    let records: ports.Records;
    let audit: ports.Audit;
    let close: () => Promise<void>;
    beforeEach(async () => {
      subject = await make();
      const store = await openAdapter(subject.records, subject.others);
      records = store.port;
      const shared: Adapter = {
        name: "records",
        options: undefined,
        spec: { ...subject.records.spec, needs: {}, open: () => records },
      };
      const opened = await openAdapter(subject.adapter, [shared, ...subject.others]);
      audit = opened.port;
      close = async () => {
        await opened.close();
        await store.close();
      };
    });
    afterEach(() => close());

    const all = async (query: ports.AuditQuery = {}): Promise<ports.AuditEntry[]> => {
      const found: ports.AuditEntry[] = [];
      let after: string | undefined;
      do {
        const page = await audit.read({ ...query, ...(after !== undefined && { after }) });
        found.push(...page.items);
        after = page.next;
      } while (after !== undefined);
      return found;
    };

    it("records who did what, when, to what, and from where", async () => {
      await audit.record(fact("token.issue", { object: "tok_1", count: 2 }));
      expect(await all()).toEqual([
        {
          id: expect.any(String),
          at: new Date(subject.now()).toISOString(),
          action: "token.issue",
          object: "tok_1",
          count: 2,
          outcome: "done",
          who: { role: "owner", userId: "ada", tokenId: "token_1", address: "192.0.2.1" },
        },
      ]);
    });

    it("records an action with its writes, or neither", async () => {
      const things = records.collection<{ of: string }>({ name: "things" });
      await audit.record(fact("thing.make"), [things.write.put("one", { of: "ada" }, "absent")]);
      await expect(audit.record(fact("thing.make"), [things.write.put("one", { of: "bob" }, "absent")])).rejects.toBeInstanceOf(
        ports.RecordConflict,
      );
      expect((await things.get("one"))?.value).toEqual({ of: "ada" });
      expect(await all()).toHaveLength(1);
    });

    it("records that an action begins before it runs, and how it ended", async () => {
      const result = await audit.attempt(fact("file.edit", { object: "f" }), async () => {
        expect(await all()).toMatchObject([{ action: "file.edit", object: "f", outcome: "begun" }]);
        await subject.pass(1000);
        return 7;
      });
      const [end, begun] = await all();
      expect([result, end?.outcome, end?.of]).toEqual([7, "done", begun?.id]);
    });

    it("records the code of an action that fails, and nothing else of the error", async () => {
      const refused = new ServiceError({ code: "not_allowed", status: 409 }, { message: "the secret text" });
      for (const error of [refused, new Error("the secret text")]) {
        await expect(audit.attempt(fact("file.edit"), () => Promise.reject(error))).rejects.toBe(error);
        await subject.pass(1000);
      }
      const entries = await all();
      expect(
        entries
          .filter(({ outcome }) => outcome === "failed")
          .map(({ error }) => error)
          .sort(),
      ).toEqual(["internal_error", "not_allowed"]);
      expect(JSON.stringify(entries)).not.toContain("secret text");
    });

    it("tells entries the newest first, in pages, by time and by action, over days without entries", async () => {
      const times: number[] = [];
      for (let at = 0; at < 6; at++) {
        times.push(subject.now());
        await audit.record(fact(at % 2 === 0 ? "even" : "odd", { object: `${at}` }));
        await subject.pass(at === 2 ? 3 * DAY_MS : at === 4 ? 60_000 : DAY_MS / 2);
      }
      const objects = async (query: ports.AuditQuery) => (await all(query)).map(({ object }) => object).join("");
      for (const limit of [1, 2, 6, 1000]) expect(await objects({ limit })).toBe("543210");
      expect(await objects({ action: "even", limit: 1 })).toBe("420");
      expect(await objects({ since: times[2]!, until: times[4]! })).toBe("32");
      expect(await objects({ since: times[1]! + 1, until: times[5]! + 1, action: "odd", limit: 2 })).toBe("53");
      expect(await objects({ until: times[5]!, limit: 1 })).toBe("43210");
      expect(await objects({ since: times[5]! + 1 })).toBe("");
      expect(await objects({ action: "none" })).toBe("");
    });

    it("finds the entries of a user, and of a part of the object's id, in pages, also few of many", async () => {
      for (let at = 0; at < 120; at++) {
        const userId = at % 40 === 0 ? "rare" : "often";
        await audit.record({ action: "a", object: `box-${at}`, who: { role: "owner", userId } });
      }
      await subject.pass(DAY_MS);
      await audit.record({ action: "a", object: "other", who: { role: "owner", userId: "rare" } });
      for (const limit of [1, 2, 50]) {
        const found = async (query: ports.AuditQuery) => (await all({ ...query, limit })).map(({ object }) => object).sort();
        expect(await found({ userId: "rare" })).toEqual(["box-0", "box-40", "box-80", "other"]);
        expect(await found({ object: "x-8", userId: "rare" })).toEqual(["box-80"]);
        expect(await found({ userId: "nobody" })).toEqual([]);
      }
    });

    it("finds the entries of callers at an address, or at addresses that begin so, with few queries also for short pages", async () => {
      const from = async (address: string | undefined, object: string) => {
        await audit.record({ action: "a", object, who: { role: "owner", ...(address !== undefined && { address }) } });
        await subject.pass(1);
      };
      await from("2001:DB8::1", "six");
      await from("192.0.2.1", "early");
      for (let at = 0; at < 60; at++) await from(at === 0 ? undefined : "198.51.100.7", `other-${at}`);
      await from("192.0.2.15", "late");
      const found = async (address: string, limit: number) => (await all({ address, limit })).map(({ object }) => object);
      for (const limit of [1, 2, 100]) {
        expect(await found("192.0.2.", limit)).toEqual(["late", "early"]);
        expect(await found("192.0.2.15", limit)).toEqual(["late"]);
        expect(await found("2001:db8::", limit)).toEqual(["six"]);
        expect(await found("0.2.1", limit)).toEqual([]);
      }
      expect((await audit.read({ address: "2001:db8::1", limit: 1 })).items).toMatchObject([{ object: "six" }]);
    });

    it("goes on where a page ended, while entries are added", async () => {
      for (let at = 0; at < 4; at++) {
        await audit.record(fact("a", { object: `${at}` }));
        await subject.pass(1000);
      }
      const first = await audit.read({ limit: 2 });
      await audit.record(fact("a", { object: "later" }));
      const second = await audit.read({ limit: 2, after: first.next! });
      expect([...first.items, ...second.items].map(({ object }) => object)).toEqual(["3", "2", "1", "0"]);
    });

    it("refuses an invalid cursor, and an invalid page size", async () => {
      await audit.record(fact("a"));
      for (const after of ["", "x", "W10", Buffer.from('["2030-01-01","x"]').toString("base64url")])
        await expect(audit.read({ after })).rejects.toBeInstanceOf(ports.AuditCursorInvalid);
      for (const limit of [0, 1001, 1.5]) await expect(audit.read({ limit })).rejects.toBeInstanceOf(RangeError);
    });

    it("takes any text as the id of an object", async () => {
      for (const object of ["", "\0", "\ud800", "x".repeat(10_000)]) await audit.record(fact("a", { object }));
      const entries = await all();
      expect(entries).toHaveLength(4);
      expect(entries.every(({ object }) => object!.length < 1000)).toBe(true);
    });
  });
}
