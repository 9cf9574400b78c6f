import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

export interface BackgroundTurnsSubject {
  /** Plays a turn by delivering its prompt as a text, and fails at the prompt `fail`. */
  readonly adapter: Adapter<typeof ports.backgroundTurns>;
  /** Adapters that fill what the adapter needs. */
  readonly others: readonly Adapter[];
}

const { signal } = new AbortController();

/** The law of the port `backgroundTurns`, as vitest tests. `make` is called once per test. */
export function backgroundTurnsConformance(
  name: string,
  make: () => BackgroundTurnsSubject | Promise<BackgroundTurnsSubject>,
): void {
  describe(`background turns port: ${name}`, () => {
    let opened: OpenAdapter<ports.BackgroundTurns>;
    let turns: ports.BackgroundTurns;
    beforeEach(async () => {
      const { adapter, others } = await make();
      opened = await openAdapter(adapter, others);
      turns = opened.port;
    });
    afterEach(() => opened.close());

    const start = (prompt: string, agentId = "helper") =>
      turns.start({
        ...{ agentId, userId: "owner", prompt, toolIds: ["SendUserMessage"], maxTurns: 5 },
        origin: { origin: "webhook", displayName: "push" },
      });
    const page = async (offset = 0, limit = 100, agentId = "helper") => {
      const { items, total } = await turns.deliveries(agentId, { offset, limit, signal });
      return { items: await Array.fromAsync(items), total };
    };
    const delivered = (count: number, agentId = "helper") =>
      vi.waitFor(async () => expect((await page(0, 100, agentId)).total).toBe(count), 10_000);

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

    it("goes on after a turn that fails", async () => {
      await start("fail");
      await start("afterwards");
      await delivered(1);
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
