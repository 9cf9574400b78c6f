import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface AgentEngineUnderTest {
  readonly adapter: Adapter<typeof ports.agentEngines>;
  readonly others: readonly Adapter[];
  /** Fields of the turn that this engine needs: provider and model. */
  readonly turn?: Partial<ports.AgentTurn>;
  /** What to say to it so that it answers at length; default: the word `hello`, often. */
  readonly prompt?: string;
}

/** A turn's context as a test has it: what was said, and steps that are remembered over runs. */
export interface RememberedContext {
  readonly context: ports.TurnContext;
  readonly said: ports.Saying[];
  readonly stop: AbortController;
  /** Names of steps that ran, in order. */
  readonly ran: string[];
}

/** A context for one run; given the memory of another run, finished steps are not run again. */
export function rememberedContext(
  memory: Map<string, string>,
  {
    callTool = noTool,
    say = () => {},
  }: { callTool?: ports.TurnContext["callTool"]; say?: (saying: ports.Saying) => void | Promise<void> } = {},
): RememberedContext {
  const said: ports.Saying[] = [];
  const ran: string[] = [];
  const stop = new AbortController();
  const { signal } = stop;
  const context: ports.TurnContext = {
    signal,
    callTool,
    say(saying) {
      said.push(saying);
      return say(saying);
    },
    async step(name, run) {
      signal.throwIfAborted();
      if (!memory.has(name)) {
        ran.push(name);
        memory.set(name, JSON.stringify((await run(signal)) ?? null));
      }
      return JSON.parse(memory.get(name)!) as never;
    },
  };
  return { context, said, stop, ran };
}

async function noTool(): Promise<ports.ToolResult> {
  return { content: [{ type: "text", text: "There is no such tool" }], isError: true };
}

/** The law of agent engines, as vitest tests. `make` is called once per test. */
export function agentEngineConformance(name: string, make: () => AgentEngineUnderTest | Promise<AgentEngineUnderTest>): void {
  describe(`agent-engines port: ${name}`, () => {
    let made: AgentEngineUnderTest;
    let opened: OpenAdapter<ports.AgentEngine>;
    let engine: ports.AgentEngine;
    let turn: ports.AgentTurn;
    beforeEach(async () => {
      made = await make();
      opened = await openAdapter(made.adapter, made.others);
      engine = opened.port;
      turn = {
        agentId: "agent",
        agent: { name: "Agent", engine: engine.id, tools: [], skills: [], core: false },
        provider: "none",
        model: "none",
        history: [],
        input: [{ type: "text", text: made.prompt ?? "hello ".repeat(50).trim() }],
        tools: [],
        maxTurns: 5,
        caller: { agentId: "agent" },
        ...made.turn,
      };
    });
    afterEach(() => opened.close());

    const textOf = (said: readonly ports.Saying[]) => said.map((each) => (each.type === "text" ? each.delta : "")).join("");

    it("has an id, which agent.json names", () => expect(engine.id).toMatch(/^[\w-]+$/));

    it("says what its outcome says, in pieces and in order", async () => {
      const { context, said } = rememberedContext(new Map());
      const outcome = await engine.run(turn, context);
      expect(outcome.output).not.toBe("");
      expect(textOf(said).trim()).toBe(outcome.output.trim());
      expect(said.filter(({ type }) => type === "text").length).toBeGreaterThan(1);
      expect(outcome.end).toBe("completed");
      expect(outcome.toolCalls).toEqual([]);
    });

    it("brings messages that JSON can keep, the last of them the agent's, and they can be the history of the next turn", async () => {
      const outcome = await engine.run(turn, rememberedContext(new Map()).context);
      expect(JSON.parse(JSON.stringify(outcome.messages))).toEqual(outcome.messages);
      expect(outcome.messages.at(-1)?.role).toBe("assistant");
      const history = [{ role: "user" as const, parts: turn.input }, ...outcome.messages];
      const next = await engine.run({ ...turn, history }, rememberedContext(new Map()).context);
      expect(next.output).not.toBe("");
    });

    it("does nothing again that a step remembers, and comes to the same end", async () => {
      const memory = new Map<string, string>();
      const first = rememberedContext(memory);
      const outcome = await engine.run(turn, first.context);
      expect(first.ran.length).toBeGreaterThan(0);
      const second = rememberedContext(memory);
      const again = await engine.run(turn, second.context);
      expect(second.ran).toEqual([]);
      expect(JSON.parse(JSON.stringify(again))).toEqual(JSON.parse(JSON.stringify(outcome)));
    });

    it("waits where what it said must be taken first", async () => {
      const gate = Promise.withResolvers<void>();
      const { context, said } = rememberedContext(new Map(), { say: () => gate.promise });
      const running = engine.run(turn, context);
      for (let turns = 0; turns < 200; turns++) await new Promise(setImmediate);
      expect(said.length).toBeLessThanOrEqual(1);
      gate.resolve();
      await running;
      expect(said.length).toBeGreaterThan(1);
    });

    it("ends with the signal's reason when it aborts, also at once, and says nothing after it", async () => {
      const { context, said, stop } = rememberedContext(new Map(), { say: () => stop.abort(new Error("enough")) });
      await expect(engine.run(turn, context)).rejects.toThrow("enough");
      expect(said.length).toBe(1);
      const late = rememberedContext(new Map());
      late.stop.abort(new Error("before it began"));
      await expect(engine.run(turn, late.context)).rejects.toThrow("before it began");
      expect(late.said).toEqual([]);
    });

    it("plays several turns side by side, each by itself", async () => {
      const outcomes = await Promise.all(
        [1, 2, 3].map((at) => {
          const { context, said } = rememberedContext(new Map());
          const input = [{ type: "text" as const, text: `${made.prompt ?? "number"} ${at}` }];
          return engine.run({ ...turn, input }, context).then((outcome) => ({ outcome, said }));
        }),
      );
      for (const { outcome, said } of outcomes) expect(textOf(said).trim()).toBe(outcome.output.trim());
    });
  });
}
