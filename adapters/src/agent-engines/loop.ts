import { defineAdapter, ports } from "@portico/core";
import { markForCache } from "./loop/cache-marks.ts";
import { type AskedCall, callTools } from "./loop/call-tools.ts";
import { ContextFit, type Said } from "./loop/context-fit.ts";
import { estimateTextTokens } from "./loop/context-window.ts";
import { CutAnswers } from "./loop/cut-answers.ts";
import type { FunctionTool } from "./loop/language-model.ts";
import type { ModelAnswer } from "./loop/model-answer.ts";
import { isTooLong } from "./loop/model-refused.ts";
import { callModel } from "./loop/model-step.ts";
import { openLanguageModel } from "./loop/open-language-model.ts";
import { toFunctionTool, toPrompt } from "./loop/prompt.ts";

/** Options of `loopAgentEngine`. */
export interface LoopOptions {
  /**
   * Maximum tokens of a model request. If a request would be longer, results of tools are shortened and older turns are left out.
   * Default: 120,000.
   */
  readonly contextTokens?: number;
  /** The same for single models, by model name. */
  readonly contextTokensOf?: Readonly<Record<string, number>>;
  /** Maximum characters of a tool's result that the model gets. Default: 50,000. */
  readonly toolResultCharacters?: number;
  /** Whether requests of the Messages protocol contain marks for the provider's prompt cache. Default: true. */
  readonly promptCache?: boolean;
  /** Maximum tokens of a model's answer. Default: the model's own limit. */
  readonly maxOutputTokens?: number;
}

/**
 * The built-in agent engine. It calls the model, runs the tools that the model calls, and calls the model again, until the model
 * stops by itself or `maxTurns` is reached. Every model call and every tool call is a separate step.
 */
export const loopAgentEngine = defineAdapter({
  name: "agent-engines/loop",
  port: ports.agentEngines,
  needs: { models: ports.models, clock: ports.clock, telemetry: ports.telemetry },
  open: ({ models, clock, telemetry }, options: LoopOptions): ports.AgentEngine => ({
    id: "loop",
    run: (turn, context) => new Loop(turn, context, { clock, telemetry, options, provider: providerOf(models, turn) }).run(),
  }),
});

interface LoopGiven {
  readonly provider: ports.ModelProvider;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly options: LoopOptions;
}

const CONTEXT_TOKENS = 120_000;
const RESULT_CHARACTERS = 50_000;

/** One turn. */
class Loop {
  readonly #turn: ports.AgentTurn;
  readonly #context: ports.TurnContext;
  readonly #given: LoopGiven;
  /** The messages that this turn adds to the conversation. */
  readonly #messages: ports.ConversationMessage[] = [];
  readonly #toolCalls: ports.TurnToolCall[] = [];
  readonly #cut: CutAnswers;
  readonly #fit: ContextFit;
  readonly #tools: readonly FunctionTool[];
  #usage: ports.TurnUsage = { modelCalls: 0 };
  /** Messages of this turn that the call before contained. */
  #askedBefore = 0;

  constructor(turn: ports.AgentTurn, context: ports.TurnContext, given: LoopGiven) {
    this.#turn = turn;
    this.#context = context;
    this.#given = given;
    this.#cut = new CutAnswers(turn.agent);
    this.#tools = turn.tools.map(toFunctionTool);
    const { contextTokens = CONTEXT_TOKENS, contextTokensOf = {} } = given.options;
    this.#fit = new ContextFit(
      Object.hasOwn(contextTokensOf, turn.model) ? contextTokensOf[turn.model]! : contextTokens,
      estimateTextTokens(JSON.stringify(this.#tools) + (turn.agent.instructions ?? "")),
    );
  }

  async run(): Promise<ports.TurnOutcome> {
    const { maxTurns } = this.#turn;
    for (let count = 1; ; count++) {
      this.#context.signal.throwIfAborted();
      const answer = await this.#ask(count);
      this.#count(answer);
      const parts = this.#cut.whole(answer.parts.map((part) => this.#labelled(part)));
      if (answer.cut !== undefined && count < maxTurns && this.#cut.goOn(answer.cut, parts)) continue;
      this.#cut.clear();
      const calls = answer.calls.map((call) => ({
        ...call,
        toolId: this.#turn.tools.find(({ name }) => name === call.name)?.id ?? call.name,
      }));
      const callParts = calls.map((call) => ({ type: "tool_call" as const, ...call, arguments: call.arguments ?? {} }));
      // A message without parts would be refused by providers in the next turn.
      if (parts.length + callParts.length > 0) this.#messages.push({ role: "assistant", parts: [...parts, ...callParts] });
      if (calls.length === 0) return this.#outcome(parts, endingOf(answer, parts));
      const results = await this.#call(calls, count);
      this.#messages.push({ role: "tool", parts: results });
      for (const [at, { callId, toolId, name, arguments: args }] of callParts.entries())
        this.#toolCalls.push({ callId, toolId, name, arguments: args, isError: results[at]!.result.isError });
      if (count >= maxTurns) return this.#outcome(parts, "max_turns");
    }
  }

  #call(calls: readonly AskedCall[], count: number) {
    const { toolResultCharacters: resultCharacters = RESULT_CHARACTERS } = this.#given.options;
    return callTools({ context: this.#context, tools: this.#turn.tools, resultCharacters }, calls, count);
  }

  async #ask(count: number): Promise<ModelAnswer> {
    const { step, say } = this.#context;
    const now = this.#now();
    const ask = (name: string) => {
      const said = this.#fit.within({ history: this.#turn.history, now });
      return step(name, async (signal) => callModel(await this.#question(said), say, signal), { repeatable: true });
    };
    try {
      const answer = await ask(`model-${count}`);
      this.#fit.counted(answer.usage.inputTokens);
      return answer;
    } catch (error) {
      // The estimate was too low for this model. Retry once with half of it.
      if (!isTooLong(error) || this.#turn.history.length + this.#messages.length === 0) throw error;
      this.#fit.tooLong();
      return await ask(`model-${count}-shorter`);
    } finally {
      this.#askedBefore = now.length;
    }
  }

  async #question(said: Said) {
    const { provider, clock, telemetry, options } = this.#given;
    const { agent, model } = this.#turn;
    const { id, protocol, dialect = ports.PUBLISHED_CHAT_DIALECT } = provider;
    const asked = { provider: id, protocol, model, takesReasoning: dialect.reasoningContent };
    const prompt = toPrompt(agent.instructions, said, asked);
    const plain = { prompt, tools: this.#tools };
    const before = () => toPrompt(agent.instructions, { ...said, now: said.now.slice(0, this.#askedBefore) }, asked).length;
    const isMarked = protocol === "messages" && options.promptCache !== false;
    return {
      provider,
      clock,
      model: await openLanguageModel(provider, model, { source: "agent", telemetry }),
      ...(isMarked ? markForCache(plain, before()) : plain),
      maxOutputTokens: options.maxOutputTokens,
    };
  }

  /** The messages of this turn. */
  #now(): readonly ports.ConversationMessage[] {
    return [{ role: "user", parts: this.#turn.input }, ...this.#messages, ...this.#cut.prompt];
  }

  /** Adds the name of its model to a thinking part: no other model accepts it. */
  #labelled(part: ports.MessagePart): ports.MessagePart {
    const { provider, model } = this.#turn;
    return part.type === "thinking" ? { ...part, provider, model } : part;
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

  #outcome(parts: readonly ports.MessagePart[], end: ports.TurnEnding): ports.TurnOutcome {
    return { output: textOf(parts), messages: this.#messages, toolCalls: this.#toolCalls, end, usage: this.#usage };
  }
}

/** Why a turn ended with this answer, which calls no tool (open points 13). */
function endingOf({ cut }: ModelAnswer, parts: readonly ports.MessagePart[]): ports.TurnEnding {
  if (cut !== undefined) return cut === "context_full" ? "max_tokens" : cut;
  return textOf(parts).trim() === "" ? "empty_answer" : "completed";
}

function textOf(parts: readonly ports.MessagePart[]): string {
  return parts.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n\n");
}

function providerOf(models: readonly ports.ModelProvider[], turn: ports.AgentTurn): ports.ModelProvider {
  const provider = models.find(({ id }) => id === turn.provider);
  if (!provider) throw new TypeError("The turn's provider is not configured");
  return provider;
}
