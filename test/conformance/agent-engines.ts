import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface AgentEngineUnderTest {
  readonly adapter: Adapter<typeof ports.agentEngines>;
  readonly others: readonly Adapter[];
  /** Fields of the turn that this engine needs: provider and model. */
  readonly turn?: Partial<ports.AgentTurn>;
  /** What to say to it so that it answers at length; default: the word `hello`, often. */
  readonly prompt?: string;
  /** For an engine that can pause: what to say to it so that it calls these tools, all at once, and then answers. */
  readonly calling?: (names: readonly string[]) => string;
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
    needsApproval,
    steering,
  }: {
    steering?: ports.TurnContext["steering"];
    callTool?: ports.TurnContext["callTool"];
    say?: (saying: ports.Saying) => void | Promise<void>;
    needsApproval?: (call: ports.PausedCall) => Promise<boolean>;
  } = {},
): RememberedContext {
  const said: ports.Saying[] = [];
  const ran: string[] = [];
  const stop = new AbortController();
  const { signal } = stop;
  const context: ports.TurnContext = {
    signal,
    callTool,
    ...(needsApproval && { needsApproval }),
    ...(steering && { steering }),
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
  describeSuite(`agent-engines port: ${name}`, () => {
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

    describe("what the user says while a turn goes on, for an engine that can be steered", () => {
      /** What the user said, until the engine asks for it. */
      const saidBy = () => {
        const messages: (readonly ports.MessagePart[])[] = [];
        return {
          user: (text: string) => void messages.push([{ type: "text", text }]),
          steering: async () => messages.splice(0),
        };
      };
      const rolesOf = ({ messages }: ports.TurnOutcome) => messages.map(({ role }) => role);

      it("follows the answer that would have been the last, and is answered in the same turn", async ({ skip }) => {
        if (!engine.canSteer) return skip();
        const { user, steering } = saidBy();
        let isFirst = true;
        const say = () => (isFirst && user("and this"), void (isFirst = false));
        const outcome = await engine.run(turn, rememberedContext(new Map(), { say, steering }).context);
        expect(rolesOf(outcome)).toEqual(["assistant", "user", "assistant"]);
        expect(outcome.messages[1]!.parts).toEqual([{ type: "text", text: "and this" }]);
        expect(outcome.end).toBe("completed");
      });

      it("follows the results of the tools that ran", async ({ skip }) => {
        if (!engine.canSteer || !made.calling) return skip();
        const { user, steering } = saidBy();
        const tool = { id: "own/look", name: "look", description: "The tool look", riskLevel: "low", idempotent: true } as const;
        const inputSchema = { type: "object", properties: { of: { type: "string" } } };
        const callTool = async () => (user("and this"), { content: [{ type: "text" as const, text: "seen" }], isError: false });
        const played: ports.AgentTurn = {
          ...turn,
          input: [{ type: "text", text: made.calling(["look"]) }],
          tools: [{ ...tool, inputSchema, requiresConfirmation: false }],
        };
        const outcome = await engine.run(played, rememberedContext(new Map(), { callTool, steering }).context);
        expect(rolesOf(outcome)).toEqual(["assistant", "tool", "user", "assistant"]);
        expect(outcome.messages[2]!.parts).toEqual([{ type: "text", text: "and this" }]);
      });

      it("is not asked for after the last model call that the turn may make", async ({ skip }) => {
        if (!engine.canSteer) return skip();
        const { user, steering } = saidBy();
        const say = () => user("too late");
        const outcome = await engine.run({ ...turn, maxTurns: 1 }, rememberedContext(new Map(), { say, steering }).context);
        expect(rolesOf(outcome)).toEqual(["assistant"]);
        expect((await steering()).length).toBeGreaterThan(0);
      });
    });

    it("can pause where its test says how it calls tools, and only there", () =>
      expect(engine.canPause ?? false).toBe(made.calling !== undefined));

    describe("a call that needs a person's approval", () => {
      const toolOf = (name: string, lane?: string): ports.TurnTool => ({
        ...{ id: `own/${name}`, name, description: `The tool ${name}`, riskLevel: "low", idempotent: lane === undefined, lane },
        ...{ inputSchema: { type: "object", properties: { of: { type: "string" } } }, requiresConfirmation: name === "write" },
      });
      /** The tools that a context ran, and what it answers for them. */
      const calledBy = (answers: Readonly<Record<string, ports.ToolResult>> = {}) => {
        const called: { readonly callId?: string | undefined; readonly toolId: string; readonly arguments: unknown }[] = [];
        const callTool: ports.TurnContext["callTool"] = async (call) => {
          called.push(call);
          return answers[call.toolId] ?? { content: [{ type: "text", text: `${call.toolId} is done` }], isError: false };
        };
        return { called, callTool };
      };
      const asks = async ({ toolId }: ports.PausedCall) => toolId === "own/write";
      const turnOf = (names: readonly string[], lane?: string): ports.AgentTurn => ({
        ...turn,
        input: [{ type: "text", text: made.calling!(names) }],
        tools: names.map((name) => toolOf(name, lane)),
      });
      /** Plays a turn until it pauses. */
      const pause = async (played: ports.AgentTurn) => {
        const tools = calledBy();
        const remembered = rememberedContext(new Map(), { ...tools, needsApproval: asks });
        const paused = await engine.run(played, remembered.context).catch((error: unknown) => error as ports.TurnPaused);
        if (!("progress" in paused)) throw new Error("The engine did not pause", { cause: paused });
        return { ...tools, ...remembered, paused, progress: JSON.parse(JSON.stringify(paused.progress)) as object };
      };
      const idsOf = (said: readonly ports.Saying[], type: ports.Saying["type"]) =>
        said.flatMap((each) => (each.type === type && "toolId" in each ? [each.toolId] : []));

      it("makes the turn pause: the call is said and not run, and calls that do not wait run", async ({ skip }) => {
        if (!made.calling) return skip();
        const { paused, said, called } = await pause(turnOf(["write", "look"]));
        expect(paused.name).toBe("TurnPaused");
        expect(paused.calls).toEqual([{ callId: expect.any(String), toolId: "own/write", arguments: expect.any(Object) }]);
        expect(called.map(({ toolId }) => toolId)).toEqual(["own/look"]);
        expect(idsOf(said, "tool_call").toSorted()).toEqual(["own/look", "own/write"]);
        expect(idsOf(said, "tool_result")).toEqual(["own/look"]);
      });

      it("is made when the turn goes on, from progress that JSON kept, and nothing of before is repeated", async ({ skip }) => {
        if (!made.calling) return skip();
        const played = turnOf(["write", "look"]);
        const { progress, paused } = await pause(played);
        const tools = calledBy();
        const { context, said } = rememberedContext(new Map(), { ...tools, needsApproval: async () => false });
        const outcome = await engine.run({ ...played, progress }, context);
        expect(tools.called).toEqual(paused.calls);
        expect([idsOf(said, "tool_call"), idsOf(said, "tool_result")]).toEqual([[], ["own/write"]]);
        expect(outcome.end).toBe("completed");
        expect(outcome.toolCalls.map(({ toolId, isError }) => [toolId, isError])).toEqual([
          ["own/write", false],
          ["own/look", false],
        ]);
        // What the model is told in the next turn, with the results from before the pause.
        const parts = outcome.messages.flatMap((message) => message.parts);
        expect(parts.flatMap((part) => (part.type === "tool_result" ? [part.toolId] : [])).toSorted()).toEqual([
          "own/look",
          "own/write",
        ]);
        expect(outcome.messages.map(({ role }) => role)).toEqual(["assistant", "tool", "assistant"]);
        if (outcome.usage) expect(outcome.usage.modelCalls).toBe(2);
      });

      it("that was rejected, or got other arguments, has the result that the context gives", async ({ skip }) => {
        if (!made.calling) return skip();
        const played = turnOf(["write", "look"]);
        const { progress } = await pause(played);
        const rejected: ports.ToolResult = { content: [{ type: "text", text: "A person rejected it" }], isError: true };
        const tools = calledBy({ "own/write": rejected });
        const { context, said } = rememberedContext(new Map(), { ...tools, needsApproval: async () => false });
        const outcome = await engine.run({ ...played, progress }, context);
        expect(outcome.toolCalls.map(({ toolId, isError }) => [toolId, isError])).toContainEqual(["own/write", true]);
        expect(said).toContainEqual(expect.objectContaining({ type: "tool_result", toolId: "own/write", result: rejected }));
      });

      it("holds back the later calls of its lane, which run after it", async ({ skip }) => {
        if (!made.calling) return skip();
        const played = turnOf(["write", "look"], "lane");
        const { progress, called } = await pause(played);
        expect(called).toEqual([]);
        const tools = calledBy();
        await engine.run({ ...played, progress }, rememberedContext(new Map(), tools).context);
        expect(tools.called.map(({ toolId }) => toolId)).toEqual(["own/write", "own/look"]);
      });

      it("does not make a turn pause that is stopped", async ({ skip }) => {
        if (!made.calling) return skip();
        const { context, stop } = rememberedContext(new Map(), {
          needsApproval: async () => (stop.abort(new Error("enough")), true),
        });
        await expect(engine.run(turnOf(["write"]), context)).rejects.toThrow("enough");
      });

      it("runs at once where the context knows of no approvals", async ({ skip }) => {
        if (!made.calling) return skip();
        const tools = calledBy();
        await engine.run(turnOf(["write"]), rememberedContext(new Map(), tools).context);
        expect(tools.called.map(({ toolId }) => toolId)).toEqual(["own/write"]);
      });
    });
  });
}
