// What the pages of ports quote, run.
import { memoryBackgroundTurns } from "@portico/adapters/background-turns/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { randomIds } from "@portico/adapters/ids/random";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { defineAdapter, definePort, ports, Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";

interface Note {
  readonly owner: string;
  readonly writtenAt: string;
}

describe("docs/ports/records.md", () => {
  it("writes a record, and finds it by an index", async () => {
    const { port: records } = await openAdapter(memoryRecords());
    const notes = records.collection<Note>({ name: "notes", indexes: { byOwner: ["owner", "writtenAt"] } });
    await notes.put("n1", { owner: "ada", writtenAt: "2030-01-01" }, "absent");
    const page = await notes.query({ where: { owner: "ada" }, order: { by: "writtenAt", direction: "descending" }, limit: 20 });
    expect(page.items.map(({ id, value }) => [id, value])).toEqual([["n1", { owner: "ada", writtenAt: "2030-01-01" }]]);
  });

  it("declares a store on PostgreSQL, whose address shows nowhere", () => {
    const url = new Secret("postgres://portico:PASSWORD@db.internal/portico");
    const store = postgresRecords({ url, schema: "portico", poolSize: 10 });
    expect(JSON.stringify(store)).not.toContain("PASSWORD");
  });
});

/** Work that has an agent do something, and ends as its turn ends. */
const asking = defineAdapter({
  name: "work-that-asks",
  port: definePort<{ ask(id: string): Promise<unknown> }>("test/asking"),
  needs: { turns: ports.backgroundTurns, engine: ports.engine },
  open({ turns, engine }, { timeoutMs, prompt }: { readonly timeoutMs: number; readonly prompt: string }, scope) {
    const turn = { agentId: "helper", userId: "ada", prompt, maxTurns: 5, origin: { origin: "test", displayName: "Test" } };
    const work = async (context: ports.WorkContext): Promise<string> => {
      const { runId } = await turns.start({ ...turn, key: context.id, tell: { workId: context.id, signal: "turn-ended" } });
      const end = await context.waitFor<ports.BackgroundTurnEnd>("turn-ended", { timeoutMs });
      if (!end) await turns.stop(runId, "workflow_timeout");
      return end?.output ?? "nothing";
    };
    engine.define("ask", work, { onInterrupted: "resume" });
    scope.onReady(() => engine.ready());
    return {
      async ask(id: string) {
        await engine.start("ask", id, {});
        await expect.poll(async () => (await engine.status(id))?.state, { timeout: 30_000 }).toBe("completed");
        return (await engine.status(id))?.output;
      },
    };
  },
});

describe("docs/ports/background-turns.md", () => {
  const stopped: unknown[] = [];
  const turns = memoryBackgroundTurns({
    play({ prompt }, _deliver, signal) {
      if (prompt !== "wait") return `I was told: ${prompt}`;
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          stopped.push(signal.reason);
          reject(signal.reason);
        });
      });
    },
  });
  const others = [turns, systemClock(), randomIds(), memoryEngine({}), memoryTelemetry({ telemetry: createMemoryTelemetry() })];

  it("has work wait for the end of the turn that it began", async () => {
    const { port, close } = await openAdapter(asking({ timeoutMs: 60_000, prompt: "Good morning" }), [
      ...others,
      memoryRecords(),
    ]);
    expect(await port.ask("work_1")).toBe("I was told: Good morning");
    await close();
  });

  it("has a turn stopped that takes too long", async () => {
    const { port, close } = await openAdapter(asking({ timeoutMs: 1, prompt: "wait" }), [...others, memoryRecords()]);
    expect(await port.ask("work_1")).toBe("nothing");
    expect(stopped).toHaveLength(1);
    await close();
  });
});
