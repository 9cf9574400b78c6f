import { defineAdapter, optional, ports } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { AnswerCheck } from "./loop/answer-check.ts";
import { markForCache } from "./loop/cache-marks.ts";
import { callSettings } from "./loop/call-settings.ts";
import { callTools, noneCalled } from "./loop/call-tools.ts";
import { ContextFit, type Said } from "./loop/context-fit.ts";
import { type ContextOptions, RESULT_CHARACTERS } from "./loop-options.ts";
import { type ContextSettings, contextSettings } from "./loop/context-settings.ts";
import { estimateTextTokens, estimateTokens } from "./loop/context-window.ts";
import { type CountedCalls, countedCalls } from "../models/call/counted-calls.ts";
import { CutAnswers } from "./loop/cut-answers.ts";
import type { ModelAnswer } from "./loop/model-answer.ts";
import { isTooLong } from "../models/call/model-refused.ts";
import type { ModelRequest, RequestTool } from "../models/call/model-request.ts";
import { callModel, type ModelQuestion } from "./loop/model-step.ts";
import { openModel } from "../models/call/open-model.ts";
import { ownCallIds } from "./loop/own-call-ids.ts";
import { type Progress, readProgress } from "./loop/progress.ts";
import { toMessages, toRequestTool } from "./loop/prompt.ts";
import { turnMeter } from "./loop/turn-meter.ts";
import { splitForSummary, summaryMessage, summaryRequest, toSummary } from "./loop/summary.ts";

/** Options of `loopAgentEngine`. */
export interface LoopOptions {
  /** How long requests to models may be, and what happens to longer ones. */
  readonly context?: ContextOptions | undefined;
  /** Maximum tokens of a model's answer. Default: the model's own limit. */
  readonly maxOutputTokens?: number;
}

/**
 * The built-in agent engine. It calls the model, runs the tools that the model calls, and calls the model again, until the model
 * stops by itself or `maxTurns` is reached. Every model call and every tool call is a separate step. If a call needs a person's
 * approval, it pauses: after the wait, no model call and no tool call of before is repeated.
 */
export const loopAgentEngine = defineAdapter({
  name: "agent-engines/loop",
  port: ports.agentEngines,
  needs: { models: ports.models, clock: ports.clock, telemetry: ports.telemetry, usage: optional(ports.usage) },
  open({ models, clock, telemetry, usage }, options: LoopOptions, scope): ports.AgentEngine {
    const checks = new SchemaChecks(clock);
    scope.onClose(() => checks.close());
    return {
      id: "loop",
      canPause: true,
      canSteer: true,
      async run(turn, context) {
        const provider = providerOf(models, turn);
        const settings = await contextSettings(turn, options.context ?? {}, { provider, clock, signal: context.signal });
        const { userId, agentId } = turn.caller;
        const counted = countedCalls(usage, { source: "agent", userId, agentId });
        return new Loop(turn, context, { clock, telemetry, counted, checks, options, settings, provider }).run();
      },
    };
  },
});

interface LoopGiven {
  readonly provider: ports.ModelProvider;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly counted: CountedCalls | undefined;
  readonly checks: SchemaChecks;
  readonly options: LoopOptions;
  readonly settings: ContextSettings;
}

/** Messages of a conversation from which on the oldest are summarized, however short they are: no turn gets more than 2,000. */
const MOST_MESSAGES = 1500;

/** One turn. */
class Loop {
  readonly #turn: ports.AgentTurn;
  readonly #context: ports.TurnContext;
  readonly #given: LoopGiven;
  /** The messages that this turn adds to the conversation. */
  readonly #messages: ports.ConversationMessage[] = [];
  readonly #toolCalls: ports.TurnToolCall[] = [];
  readonly #cut: CutAnswers;
  readonly #check: AnswerCheck;
  readonly #fit: ContextFit;
  readonly #tools: readonly RequestTool[];
  #usage: ports.TurnUsage = { modelCalls: 0 };
  /** Earlier turns. The oldest may be a summary that this turn wrote. */
  #history: readonly ports.ConversationMessage[];
  #summary: ports.TurnSummary | undefined;
  #hasTriedSummary = false;
  /** Messages of this turn that the call before contained. */
  #askedBefore = 0;

  constructor(turn: ports.AgentTurn, context: ports.TurnContext, given: LoopGiven) {
    this.#turn = turn;
    this.#context = context;
    this.#given = given;
    this.#cut = new CutAnswers(turn.agent);
    this.#check = new AnswerCheck(turn.agent, given.checks);
    this.#tools = turn.tools.map(toRequestTool);
    this.#history = turn.history;
    this.#fit = new ContextFit(
      given.settings.tokens,
      estimateTextTokens(JSON.stringify(this.#tools) + (turn.agent.instructions ?? "")),
    );
  }

  async run(): Promise<ports.TurnOutcome> {
    const { maxTurns, progress } = this.#turn;
    const { signal } = this.#context;
    await this.#check.ready(signal);
    const paused = progress && readProgress(progress);
    if (paused) {
      this.#restore(paused);
      const ended = await this.#call(paused, paused.parts);
      if (ended) return ended;
    }
    // What the user said while the turn waited in its queue, or for a person.
    await this.#steer();
    for (let count = (paused?.count ?? 0) + 1; ; count++) {
      signal.throwIfAborted();
      const answer = await this.#ask(count);
      this.#count(answer);
      const parts = this.#cut.whole(answer.parts.map((part) => this.#labelled(part)));
      if (answer.cut !== undefined && count < maxTurns && this.#cut.goOn(answer.cut, parts)) continue;
      this.#cut.clear();
      const isFinal = answer.calls.length === 0 && answer.cut === undefined;
      if (isFinal && (await this.#check.mustCorrect(parts, textOf(parts), { mayAsk: count < maxTurns, signal }))) continue;
      const calls = ownCallIds(answer.calls, [...this.#turn.history, ...this.#messages]).map((call) => ({
        ...call,
        toolId: this.#turn.tools.find(({ name }) => name === call.name)?.id ?? call.name,
      }));
      const callParts = calls.map((call) =>
        this.#labelled({ type: "tool_call" as const, ...call, arguments: call.arguments ?? {} }),
      );
      // A message without parts would be refused by providers in the next turn.
      if (parts.length + callParts.length > 0) this.#messages.push({ role: "assistant", parts: [...parts, ...callParts] });
      if (calls.length === 0) {
        if (count < maxTurns && (await this.#steer())) continue;
        return this.#outcome(parts, endingOf(answer, parts));
      }
      const ended = await this.#call({ calls, count, called: noneCalled(calls) }, parts);
      if (ended) return ended;
      await this.#steer();
    }
  }

  /** What the user said meanwhile is the newest message of the next model call. Returns whether there was something. */
  async #steer(): Promise<boolean> {
    const messages = (await this.#context.steering?.()) ?? [];
    for (const parts of messages) this.#messages.push({ role: "user", parts });
    return messages.length > 0;
  }

  /**
   * Runs the calls of an answer. Returns the end of the turn. Undefined if the model is to be called again. Throws TurnPaused if calls
   * wait for a person.
   */
  async #call(
    { calls, count, called }: Pick<Progress, "calls" | "count" | "called">,
    parts: readonly ports.MessagePart[],
  ): Promise<ports.TurnOutcome | undefined> {
    const { resultCharacters = RESULT_CHARACTERS } = this.#given.options.context ?? {};
    const given = { context: this.#context, tools: this.#turn.tools, resultCharacters };
    const { results, waiting } = await callTools(given, calls, count, called);
    if (waiting.length > 0) {
      const isSaid = called.map((before, at) => before.isSaid || results[at] !== undefined || waiting.includes(calls[at]!));
      const now = calls.map((_call, at) => ({ result: results[at], isSaid: isSaid[at]! }));
      throw new ports.TurnPaused(
        waiting.map(({ callId, toolId, arguments: args }) => ({ callId, toolId, arguments: args })),
        this.#progress({ calls, count, called: now, parts }),
      );
    }
    this.#messages.push({ role: "tool", parts: results.filter((result) => result !== undefined) });
    for (const [at, { callId, toolId, name, arguments: args = {} }] of calls.entries())
      this.#toolCalls.push({ callId, toolId, name, arguments: args, isError: results[at]!.result.isError });
    return count >= this.#turn.maxTurns ? this.#outcome(parts, "max_turns") : undefined;
  }

  #progress(open: Pick<Progress, "calls" | "count" | "called" | "parts">): Progress {
    return {
      ...open,
      format: 1,
      messages: this.#messages,
      toolCalls: this.#toolCalls,
      usage: this.#usage,
      summary: this.#summary,
      hasTriedSummary: this.#hasTriedSummary,
      askedBefore: this.#askedBefore,
    };
  }

  #restore({ messages, toolCalls, usage, summary, hasTriedSummary, askedBefore }: Progress): void {
    this.#messages.push(...messages);
    this.#toolCalls.push(...toolCalls);
    this.#usage = usage;
    this.#hasTriedSummary = hasTriedSummary;
    this.#askedBefore = askedBefore;
    if (!summary) return;
    this.#summary = summary;
    this.#history = [summaryMessage(summary.text), ...this.#history.slice(summary.messages)];
  }

  async #ask(count: number): Promise<ModelAnswer> {
    const { step, say } = this.#context;
    const now = this.#now();
    const ask = async (name: string) => {
      const said = await this.#fitting(now);
      return step(name, (signal) => callModel(this.#question(said), say, signal), { repeatable: true });
    };
    try {
      const answer = await ask(`model-${count}`);
      this.#fit.counted(answer.usage.inputTokens);
      return answer;
    } catch (error) {
      // The estimate was too low for this model. Retry once with half of it.
      if (!isTooLong(error) || this.#history.length + this.#messages.length === 0) throw error;
      this.#fit.tooLong();
      return await ask(`model-${count}-shorter`);
    } finally {
      this.#askedBefore = now.length;
    }
  }

  /** What the next call contains. If turns no longer fit, a summary takes their place. */
  async #fitting(now: Said["now"]): Promise<Said> {
    const said = this.#fit.within({ history: this.#history, now });
    const isFull = this.#fit.leavesOut || this.#history.length > MOST_MESSAGES;
    if (!isFull || this.#hasTriedSummary || !this.#given.settings.summarize) return said;
    this.#hasTriedSummary = true;
    const { old, kept } = splitForSummary(this.#history, this.#fit.limit, estimateTokens(now));
    // A summary of one message would only repeat it.
    if (old.length < 2) return said;
    const text = await this.#summarize(old);
    if (text === undefined) return said;
    this.#summary = { text, messages: old.length };
    this.#history = [summaryMessage(text), ...kept];
    this.#fit.restart();
    await this.#context.say({ type: "summary", text });
    return this.#fit.within({ history: this.#history, now });
  }

  /** The summary of the oldest messages. Undefined if the model cannot write one: the conversation then goes on without them. */
  async #summarize(old: readonly ports.ConversationMessage[]): Promise<string | undefined> {
    const { provider, clock, telemetry, counted } = this.#given;
    const { step, signal } = this.#context;
    const ask = async (stepSignal: AbortSignal) => {
      const model = openModel(provider, this.#turn.model, turnMeter({ telemetry, counted }, this.#context));
      return callModel({ clock, model, request: summaryRequest(old, this.#fit.limit) }, () => {}, stepSignal);
    };
    try {
      const answer = await step("summary", ask, { repeatable: true });
      this.#count(answer);
      return toSummary(answer.parts);
    } catch (error) {
      signal.throwIfAborted();
      telemetry.log.warn("The summary of a conversation could not be written", { agent: this.#turn.agentId }, error);
      return undefined;
    }
  }

  #question(said: Said): ModelQuestion {
    const { provider, clock, telemetry, counted, options } = this.#given;
    const { agent, model } = this.#turn;
    const { id, protocol } = provider;
    const { chat = ports.PUBLISHED_CHAT_DIALECT } = provider.facts?.(model) ?? {};
    const asked = { provider: id, protocol, state: stateProtocol(provider), model, takesReasoning: chat.reasoningContent };
    const request: ModelRequest = {
      ...(agent.instructions && { system: agent.instructions }),
      messages: toMessages(said, asked),
      ...(this.#tools.length > 0 && { tools: this.#tools }),
      ...callSettings(agent, options.maxOutputTokens),
    };
    const isMarked = (protocol === "messages" || chat.cacheMarks) && this.#given.settings.promptCache;
    const before = () => toMessages({ ...said, now: said.now.slice(0, this.#askedBefore) }, asked).length;
    return {
      clock,
      model: openModel(provider, model, turnMeter({ telemetry, counted }, this.#context)),
      request: isMarked ? markForCache(request, before()) : request,
    };
  }

  /** The messages of this turn. */
  #now(): readonly ports.ConversationMessage[] {
    return [{ role: "user", parts: this.#turn.input }, ...this.#messages, ...this.#cut.prompt, ...this.#check.prompt];
  }

  /** Adds its model and protocol to thinking and to signed calls: no other model accepts them, and none in another form. */
  #labelled(part: ports.MessagePart): ports.MessagePart {
    const { provider, model } = this.#turn;
    const isItsOwn = part.type === "thinking" || (part.type === "tool_call" && part.signature !== undefined);
    return isItsOwn ? { ...part, provider, model, protocol: stateProtocol(this.#given.provider) } : part;
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
    return {
      output: textOf(parts),
      messages: this.#messages,
      toolCalls: this.#toolCalls,
      end,
      usage: this.#usage,
      summary: this.#summary,
    };
  }
}

/** The protocol of signatures and sealed thinking. */
function stateProtocol({ upstreamProtocol, protocol }: ports.ModelProvider): string {
  return upstreamProtocol ?? protocol;
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
