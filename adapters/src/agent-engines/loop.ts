import { defineAdapter, ports } from "@portico/core";
import { cutResult, estimateTokens, fitHistory } from "./loop/context-window.ts";
import { languageModel } from "./loop/language-model.ts";
import { isTooLong } from "./loop/model-refused.ts";
import { callModel, type ModelAnswer } from "./loop/model-step.ts";
import { toFunctionTool, toPrompt } from "./loop/prompt.ts";

export interface LoopOptions {
  /** Tokens that a model is asked with at most; older turns are left out of longer conversations. Default: 120,000. */
  readonly contextTokens?: number;
  /** The same for single models, by name. */
  readonly contextTokensOf?: Readonly<Record<string, number>>;
  /** Characters of a tool's result that the model gets; default: 50,000. */
  readonly toolResultCharacters?: number;
  /** Tokens that a model may answer with; default: the model's own. */
  readonly maxOutputTokens?: number;
}

/**
 * The built-in agent engine: the model is asked, the tools that it calls are run, side by side, and it is asked again, until it stops by
 * itself or `maxTurns` model calls are over. Every model call and every tool call is a step of its own.
 */
export const loopAgentEngine = defineAdapter({
  name: "agent-engines/loop",
  port: ports.agentEngines,
  needs: { models: ports.models, clock: ports.clock },
  open: ({ models, clock }, options: LoopOptions): ports.AgentEngine => ({
    id: "loop",
    run: (turn, context) => new Loop(turn, context, { clock, options, provider: providerOf(models, turn) }).run(),
  }),
});

interface LoopGiven {
  readonly provider: ports.ModelProvider;
  readonly clock: ports.Clock;
  readonly options: LoopOptions;
}

const CONTEXT_TOKENS = 120_000;
const RESULT_CHARACTERS = 50_000;

/** One turn. */
class Loop {
  readonly #turn: ports.AgentTurn;
  readonly #context: ports.TurnContext;
  readonly #given: LoopGiven;
  /** What this turn adds to the conversation. */
  readonly #messages: ports.ConversationMessage[] = [];
  readonly #toolCalls: ports.TurnToolCall[] = [];
  #usage: ports.TurnUsage = { modelCalls: 0 };
  #budget: number;

  constructor(turn: ports.AgentTurn, context: ports.TurnContext, given: LoopGiven) {
    this.#turn = turn;
    this.#context = context;
    this.#given = given;
    const { contextTokens = CONTEXT_TOKENS, contextTokensOf = {} } = given.options;
    this.#budget = Object.hasOwn(contextTokensOf, turn.model) ? contextTokensOf[turn.model]! : contextTokens;
  }

  async run(): Promise<ports.TurnOutcome> {
    for (let count = 1; ; count++) {
      this.#context.signal.throwIfAborted();
      const answer = await this.#ask(count);
      this.#count(answer);
      const calls = answer.calls.map((call) => ({
        ...call,
        toolId: this.#turn.tools.find(({ name }) => name === call.name)?.id ?? call.name,
      }));
      const callParts = calls.map((call) => ({ type: "tool_call" as const, ...call, arguments: call.arguments ?? {} }));
      this.#messages.push({ role: "assistant", parts: [...answer.parts, ...callParts] });
      if (calls.length === 0) return this.#outcome(answer, "completed");
      const results = await Promise.all(calls.map((call, at) => this.#call(call, `tool-${count}-${at + 1}`)));
      this.#messages.push({ role: "tool", parts: results });
      if (count >= this.#turn.maxTurns) return this.#outcome(answer, "max_turns");
    }
  }

  async #ask(count: number): Promise<ModelAnswer> {
    const { step, say } = this.#context;
    const ask = (name: string) =>
      step(name, async (signal) => callModel(await this.#question(), say, signal), { repeatable: true });
    try {
      return await ask(`model-${count}`);
    } catch (error) {
      // The estimate was too low for this model: half of it, once.
      if (!isTooLong(error) || this.#turn.history.length === 0) throw error;
      this.#budget = Math.floor(estimateTokens(this.#fitted()) / 2);
      return ask(`model-${count}-shorter`);
    }
  }

  async #question() {
    const { provider, clock, options } = this.#given;
    const { agent, model, tools } = this.#turn;
    return {
      provider,
      clock,
      model: await languageModel(provider, model),
      prompt: toPrompt(agent.instructions, this.#fitted(), provider.protocol),
      tools: tools.map(toFunctionTool),
      maxOutputTokens: options.maxOutputTokens,
    };
  }

  #fitted(): readonly ports.ConversationMessage[] {
    const now: readonly ports.ConversationMessage[] = [{ role: "user", parts: this.#turn.input }, ...this.#messages];
    return [...fitHistory(this.#turn.history, this.#budget - estimateTokens(now)), ...now];
  }

  async #call(
    call: { readonly callId: string; readonly toolId: string; readonly name: string; readonly arguments?: unknown },
    stepName: string,
  ): Promise<Extract<ports.MessagePart, { type: "tool_result" }>> {
    const { callId, toolId, name } = call;
    const { say, signal } = this.#context;
    await say({ type: "tool_call", callId, toolId, name, arguments: call.arguments ?? {} });
    const result = await this.#result(call, stepName);
    signal.throwIfAborted();
    this.#toolCalls.push({ callId, toolId, name, arguments: call.arguments ?? {}, isError: result.isError });
    await say({ type: "tool_result", callId, toolId, result });
    return { type: "tool_result", callId, toolId, name, result };
  }

  async #result(
    { toolId, ...call }: { readonly toolId: string; readonly arguments?: unknown },
    stepName: string,
  ): Promise<ports.ToolResult> {
    const { step, callTool, signal } = this.#context;
    if (call.arguments === undefined) return problem("The arguments are no JSON");
    const most = this.#given.options.toolResultCharacters ?? RESULT_CHARACTERS;
    try {
      return await step(stepName, async (toolSignal) =>
        cutResult(await callTool({ toolId, arguments: call.arguments }, toolSignal), most),
      );
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Error && error.name === "StepInterrupted") {
        return problem("The process stopped while the tool ran: nobody knows whether it took effect");
      }
      throw error;
    }
  }

  #count({ usage }: ModelAnswer): void {
    const sum = (a: number | undefined, b: number | undefined) => (b === undefined ? a : (a ?? 0) + b);
    const before = this.#usage;
    this.#usage = {
      modelCalls: before.modelCalls + 1,
      inputTokens: sum(before.inputTokens, usage.inputTokens),
      outputTokens: sum(before.outputTokens, usage.outputTokens),
      cachedInputTokens: sum(before.cachedInputTokens, usage.cachedInputTokens),
      reasoningTokens: sum(before.reasoningTokens, usage.reasoningTokens),
    };
  }

  #outcome({ parts }: ModelAnswer, end: ports.TurnOutcome["end"]): ports.TurnOutcome {
    const output = parts.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n\n");
    const order = new Map(
      this.#messages
        .flatMap(({ parts: all }) => all)
        .flatMap((part, at) => (part.type === "tool_call" ? [[part.callId, at]] : [])),
    );
    const toolCalls = this.#toolCalls.toSorted((a, b) => order.get(a.callId)! - order.get(b.callId)!);
    return { output, messages: this.#messages, toolCalls, end, usage: this.#usage };
  }
}

function providerOf(models: readonly ports.ModelProvider[], turn: ports.AgentTurn): ports.ModelProvider {
  const provider = models.find(({ id }) => id === turn.provider);
  if (!provider) throw new TypeError("The turn's provider is not configured");
  return provider;
}

function problem(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
