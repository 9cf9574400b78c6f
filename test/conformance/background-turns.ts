import { type Adapter, defineAdapter, definePort, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface BackgroundTurnsSubject {
  /**
   * Plays a turn by delivering its prompt as a text and saying it, too. Fails at the prompt `fail`; at `wait` it says and delivers nothing,
   * and goes on until it is stopped; at `depth` it delivers the `workflowDepth` that its tools are told.
   */
  readonly adapter: Adapter<typeof ports.backgroundTurns>;
  /** Adapters that fill what the adapter needs, and an engine. */
  readonly others: readonly Adapter[];
}

/** More turns than any adapter executes at once. */
const MORE_THAN_AT_ONCE = 12;

interface Waiting {
  readonly turns: ports.BackgroundTurns;
  readonly engine: ports.Engine;
}

/** The port, and an engine with work of the kind `wait` that answers the signal `ended`. */
const waiting = defineAdapter({
  name: "background-turns-and-work-that-waits",
  port: definePort<Waiting>("test/waiting"),
  needs: { turns: ports.backgroundTurns, engine: ports.engine },
  open(given, _options: void, scope): Waiting {
    given.engine.define("wait", (context) => context.waitFor("ended"), { onInterrupted: "resume" });
    scope.onReady(() => given.engine.ready());
    return given;
  },
});

const { signal } = new AbortController();

/** The law of the port `backgroundTurns`, as vitest tests. `make` is called once per test. */
export function backgroundTurnsConformance(
  name: string,
  make: () => BackgroundTurnsSubject | Promise<BackgroundTurnsSubject>,
): void {
  describeSuite(`background turns port: ${name}`, () => {
    let opened: OpenAdapter<Waiting>;
    let turns: ports.BackgroundTurns;
    let engine: ports.Engine;
    beforeEach(async () => {
      const { adapter, others } = await make();
      opened = await openAdapter(waiting(), [adapter, ...others]);
      ({ turns, engine } = opened.port);
    });
    afterEach(() => opened.close());

    const start = (prompt: string, agentId = "helper", more: Pick<ports.BackgroundTurn, "key" | "tell" | "workflowDepth"> = {}) =>
      turns.start({
        ...{ agentId, userId: "owner", prompt, toolIds: ["SendUserMessage"], maxTurns: 5 },
        origin: { origin: "webhook", displayName: "push" },
        ...more,
      });
    /** Begin a turn whose end is told to work of this id. */
    const startToTell = async (prompt: string, workId: string) => {
      await engine.start("wait", workId, {});
      return start(prompt, "helper", { tell: { workId, signal: "ended" } });
    };
    const told = (workId: string) =>
      vi.waitFor(async () => {
        const status = await engine.status(workId);
        expect(status?.state).toBe("completed");
        return status!.output;
      }, 30_000);
    const page = async (offset = 0, limit = 100, agentId = "helper") => {
      const { items, total } = await turns.deliveries(agentId, { offset, limit, signal });
      return { items: await Array.fromAsync(items), total };
    };
    const delivered = (count: number, agentId = "helper") =>
      vi.waitFor(async () => expect((await page(0, 100, agentId)).total).toBe(count), 30_000);

    it("plays an accepted turn, and lists what it delivers with its run and origin", async () => {
      const { runId } = await start("Good morning");
      await delivered(1);
      const { items } = await page();
      expect(items).toEqual([
        {
          id: expect.any(String),
          runId,
          deliveredAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
          origin: "webhook",
          displayName: "push",
          delivery: { message: "Good morning", attachments: [] },
        },
      ]);
    });

    it("plays each turn once, and gives each a run of its own", async () => {
      const runs = await Promise.all(Array.from({ length: 20 }, (_, index) => start(`${index}`)));
      expect(new Set(runs.map(({ runId }) => runId)).size).toBe(20);
      await delivered(20);
      const { items } = await page();
      expect(new Set(items.map(({ runId }) => runId)).size).toBe(20);
      expect(new Set(items.map(({ id }) => id)).size).toBe(20);
    });

    it("tells a turn's tools the depth of the workflow run that began it, and nothing without such a run", async () => {
      await start("depth", "helper", { workflowDepth: 3 });
      await delivered(1);
      await start("depth");
      await delivered(2);
      expect((await page()).items.map(({ delivery }) => delivery.message)).toEqual(["undefined", "3"]);
    });

    it("goes on after a turn that fails", async () => {
      await start("fail");
      await start("afterwards");
      await delivered(1);
    });

    it("answers the same key with the same turn, with any other content, also after its end", async () => {
      const first = await start("once", "helper", { key: "a" });
      expect(await Promise.all([start("again", "second", { key: "a" }), start("again", "helper", { key: "a" })])).toEqual([
        first,
        first,
      ]);
      await delivered(1);
      expect(await start("once more", "helper", { key: "a" })).toEqual(first);
      const others = await Promise.all([start("other", "helper", { key: "A" }), start("none")]);
      expect(new Set([first, ...others].map(({ runId }) => runId)).size).toBe(3);
      await delivered(3);
      expect((await page()).items.map(({ delivery }) => delivery.message).sort()).toEqual(["none", "once", "other"]);
    });

    it("tells the end of a turn, completed or failed, to the work that waits for it", async () => {
      const [good, bad] = [await startToTell("Good morning", "good"), await startToTell("fail", "bad")];
      expect(await told("good")).toEqual({ ...good, status: "completed", output: "Good morning" });
      expect(await told("bad")).toEqual({
        ...bad,
        ...{ status: "failed", output: "", reason: "error" },
        failure: { code: expect.any(String), message: expect.any(String) },
      });
    });

    it("does not mind work that has ended or never was", async () => {
      await startToTell("first", "work");
      await told("work");
      await start("second", "helper", { tell: { workId: "work", signal: "ended" } });
      await start("third", "helper", { tell: { workId: "nobody", signal: "ended" } });
      await delivered(3);
      expect(await startToTell("fourth", "more")).toEqual(expect.objectContaining({ runId: expect.any(String) }));
      await told("more");
    });

    it("stops a turn that executes, and one that waits in line, which never begins; each is told its reason", async () => {
      const begun: string[] = [];
      for (let index = 0; index < MORE_THAN_AT_ONCE; index++) begun.push((await startToTell("wait", `${index}`)).runId);
      const waits = await startToTell("never", "last");
      expect(await turns.stop(waits.runId, "not_needed")).toBe(true);
      expect(await told("last")).toEqual({ ...waits, status: "interrupted", output: "", reason: "not_needed" });
      for (const [index, runId] of begun.entries()) {
        expect(await turns.stop(runId, `reason_${index}`)).toBe(true);
        expect(await told(`${index}`)).toEqual({ runId, status: "interrupted", output: "", reason: `reason_${index}` });
        expect(await turns.stop(runId, "too late")).toBe(false);
      }
      await start("afterwards");
      await delivered(1);
      expect((await page()).items.map(({ delivery }) => delivery.message)).toEqual(["afterwards"]);
    });

    it("also stops a waiting turn without a listener", async () => {
      const begun: string[] = [];
      for (let index = 0; index < MORE_THAN_AT_ONCE; index++) begun.push((await start("wait")).runId);
      const waits = await start("never");
      for (const runId of [waits.runId, ...begun]) expect(await turns.stop(runId, "not_needed")).toBe(true);
      await start("afterwards");
      await delivered(1);
      expect((await page()).items.map(({ delivery }) => delivery.message)).toEqual(["afterwards"]);
    });

    it("finds a turn by its key, and says whether it has ended", async () => {
      expect(await turns.find("none")).toBeUndefined();
      const { runId } = await start("wait", "helper", { key: "k" });
      expect(await turns.find("k")).toEqual({ runId, isOpen: true });
      await turns.stop(runId, "not_needed");
      await vi.waitFor(
        async () => expect(await turns.find("k")).toMatchObject({ runId, isOpen: false, end: { status: "interrupted" } }),
        30_000,
      );
    });

    it("stops no turn that has ended or never existed", async () => {
      const { runId } = await startToTell("x", "work");
      await told("work");
      expect(await turns.stop(runId, "too_late")).toBe(false);
      for (const id of ["run_none", "none", ""]) expect(await turns.stop(id, "why")).toBe(false);
    });

    it("lists the newest first, in pages, each agent's own", async () => {
      for (const [index, prompt] of ["one", "two", "three"].entries()) {
        await start(prompt);
        await delivered(index + 1);
      }
      await start("elsewhere", "second");
      await delivered(1, "second");
      const messages = async (offset: number, limit: number) =>
        (await page(offset, limit)).items.map(({ delivery }) => delivery.message);
      expect(await messages(0, 100)).toEqual(["three", "two", "one"]);
      expect(await messages(1, 1)).toEqual(["two"]);
      expect(await messages(2, 5)).toEqual(["one"]);
      expect(await page(3, 5)).toEqual({ items: [], total: 3 });
      expect(await page(0, 5, "nobody")).toEqual({ items: [], total: 0 });
    });

    it("offers SendUserMessage among its tools, each id once", async () => {
      const ids = (await turns.tools(signal)).map(({ id }) => id);
      expect(ids).toContain("SendUserMessage");
      expect(new Set(ids).size).toBe(ids.length);
    });

    it("stops listing tools for a signal that has aborted", async () => {
      const reason = new Error("gone");
      await expect(turns.tools(AbortSignal.abort(reason))).rejects.toBe(reason);
    });

    it("accepts nothing after closing", async () => {
      await opened.close();
      await expect(start("late")).rejects.toThrow();
    });
  });
}
