import { describeCause, parseDuration, ports, retryWhileStoreAway, withHandledRejections } from "@portico/core";
import type { Approval, AskedTool } from "../approvals/approval.ts";
import type { Consents } from "../approvals/consents.ts";
import { toolDigest } from "../approvals/digest.ts";
import { ToolGate } from "../approvals/tool-gate.ts";
import type { InstanceToolPolicy } from "../config.ts";
import { ABANDONED_AFTER_MS, MAX_TURNS } from "../limits.ts";
import type { MemoryOwner } from "../memory/memories.ts";
import type { MemoryOfTurn } from "../memory/memory-of-turn.ts";
import { readSkills, withSkills } from "../skills/agent-skills.ts";
import { READ_SKILL, skillTools } from "../skills/read-skill.ts";
import { builtInTools, type Delegate } from "../turns/built-in-tools.ts";
import { READ_RESOURCE, resourceTools } from "../turns/read-resource.ts";
import type { ShownRoom, TurnRoom } from "../turns/shown-files.ts";
import type { ArgumentsFault } from "../turns/tool-arguments.ts";
import { leftBehind, type TurnEnd } from "../turns/turn-end.ts";
import { TurnFailed, type TurnStopped } from "../turns/turn-failed.ts";
import type { TurnLimits } from "../turns/turn-limits.ts";
import type { PausedEnd, PausedState } from "./pause-turn.ts";
import { gatherTools } from "./turn-tools.ts";
import type { TurnTrace } from "../turns/turn-trace.ts";
import type { TurnOutput } from "../turns/turn-output.ts";
import { isBackground, type PlayedTurn, type StoredSummary } from "../turns/turn.ts";
import type { UserMessage } from "../turns/user-message.ts";

export interface PlayGiven {
  readonly clock: ports.Clock;
  readonly records: ports.Records;
  readonly agents: ports.Agents;
  readonly agentEngines: readonly ports.AgentEngine[];
  readonly models: readonly ports.ModelProvider[];
  readonly tools: readonly ports.ToolSource[];
  readonly telemetry: ports.Telemetry;
  /** The users' uploads, if the instance accepts files. */
  readonly files: ports.UserFiles | undefined;
  /** For the bytes of files that its model is shown. */
  readonly shownRoom: ShownRoom;
  readonly delegate: Delegate;
  readonly limits: TurnLimits;
  /** The instance's rules for tools. */
  readonly toolPolicy: InstanceToolPolicy;
  /** Whether the app has the calls that decide approvals. */
  readonly hasApprovals: boolean;
  readonly consents: Pick<Consents, "has">;
  readonly argumentsFault: ArgumentsFault;
}

/** The part of its conversation that a turn gets. */
export interface SaidToAgent extends Pick<ports.AgentTurn, "history" | "input"> {
  /** A summary of the first messages of `history` as the conversation keeps it. */
  readonly toStored?: (summary: ports.TurnSummary) => StoredSummary | undefined;
}

/** One turn as it is played. */
export interface Playing {
  readonly context: Pick<ports.WorkContext, "signal">;
  readonly turn: PlayedTurn;
  /** All tools that it may use; absent: those of the agent. */
  readonly toolIds?: readonly string[] | undefined;
  /** Earlier turns, oldest first, and the new input for the agent. */
  readonly said: (signal: AbortSignal, room: TurnRoom) => Promise<SaidToAgent>;
  readonly output: TurnOutput;
  /** Brings a message to people. */
  readonly deliver: (message: UserMessage) => void | Promise<void>;
  /** What its user said to it since the last call. Absent for a turn without a conversation. */
  readonly steering?: (() => Promise<readonly { readonly id: string; readonly text: string }[]>) | undefined;
  /** From its arrival on. */
  readonly trace: TurnTrace;
  /** Aborts with TurnStopped when a user stops the turn. */
  readonly stopping: AbortSignal;
  /** A turn that goes on after a wait: what it kept, and the decisions. */
  readonly resumed?: { readonly state: PausedState; readonly decided: readonly Approval[] } | undefined;
}

/**
 * Plays a turn from the agent's definition to the end of its output, or until it waits for a person. An error is the end of the turn.
 * Throws the reason of the work's signal if the turn was taken away from this process.
 */
export async function playTurn(given: PlayGiven, playing: Playing): Promise<TurnEnd | PausedEnd> {
  const { agentId: agent, runId: run, turnId, traceparent } = playing.turn;
  const beganMsAgo = playing.trace.ageMs;
  const trace = given.telemetry.work({ kind: "turn", agent, run, turn: turnId, traceparent, beganMsAgo });
  playing.trace.open(trace);
  const { clock } = given;
  const { log } = given.telemetry;
  const about = { turn: turnId, run, agent };
  const began = clock.now();
  try {
    const end = await trace.run(async () => {
      log.info(playing.resumed ? "A turn goes on" : "A turn began", about);
      const played = await play(given, playing);
      const executedMs = Math.max(0, clock.now() - began);
      if (played.status === "waiting") log.info("A turn waits for a person", { ...about, executedMs });
      else log.info("A turn ended", { ...about, outcome: played.status, reason: played.reason, executedMs });
      return played;
    });
    if (end.status === "waiting") {
      trace.end();
      return end;
    }
    trace.content?.(() => ({ input: playing.turn.prompt, output: end.output }));
    trace.end({ error: end.status === "completed" ? undefined : (end.failure?.code ?? end.status) });
    return end;
  } finally {
    trace.end();
    playing.trace.ended();
  }
}

async function play(given: PlayGiven, playing: Playing): Promise<TurnEnd | PausedEnd> {
  const {
    clock,
    telemetry,
    agents,
    agentEngines,
    models,
    tools,
    files,
    shownRoom,
    delegate,
    limits,
    toolPolicy,
    hasApprovals,
    consents,
    argumentsFault,
  } = given;
  const { context, turn, toolIds, said, output, deliver, steering, trace, resumed } = playing;
  const executedMs = resumed?.state.executedMs ?? 0;
  const beganAt = clock.now();
  const limited = limits.enter(turn, executedMs);
  const stopping = AbortSignal.any([playing.stopping, limited.signal]);
  const signal = AbortSignal.any([context.signal, stopping]);
  const room = shownRoom.open();
  const written = () => retryWhileStoreAway({ clock, signal }, () => output.written());
  let hasCalledTool = resumed !== undefined;
  let hasDelivered = resumed?.state.hasDelivered ?? false;
  /** The engine has ended, or was abandoned. */
  let isOver = false;
  const delivering = async (message: UserMessage): Promise<void> => {
    await deliver(message);
    hasDelivered = true;
  };
  try {
    const agent = await agents.find(turn.agentId);
    if (!agent) throw new TurnFailed("agent_unavailable", "The agent no longer exists");
    if (agent.metadataError) throw new TurnFailed("agent_unavailable", "The agent's agent.json cannot be used");
    const { definition } = agent;
    limited.begin(definition.limits);
    const agentEngine = agentEngines.find(({ id }) => id === definition.engine);
    if (!agentEngine) throw new TurnFailed("engine_unavailable", "The agent's engine is not installed");
    const skills = await readSkills(agents, agent, (skill, reason) =>
      telemetry.log.warn("A skill of an agent cannot be used", { agent: agent.id, skill, reason }),
    );
    const { userId, agentId, runId, workflowDepth } = turn;
    const memory = definition.memory && (await openMemory(given, { userId, agentId }, definition.memory));
    const sources = [
      builtInTools({ turn, files, room, deliver: delivering, delegate }),
      skillTools(agents, agent.id, skills),
      ...(memory ? [memory.source] : []),
      ...(definition.resources?.length ? [resourceTools(tools, definition.resources, room)] : []),
      ...tools,
    ];
    const wanted = [
      // Turns with tools of their own read resources only if these name the tool: it reaches outside of the agent's folder.
      ...(toolIds ?? [...definition.tools, ...(definition.resources?.length ? [READ_RESOURCE] : [])]),
      ...(skills.length > 0 ? [READ_SKILL] : []),
      ...(memory?.wanted(toolIds) ?? []),
    ];
    const gate = new ToolGate({
      policy: { instance: toolPolicy, agent: definition.toolPolicy, isBackground: isBackground(turn) },
      canPause: agentEngine.canPause === true,
      hasApprovals,
      argumentsFault,
      hasConsent: (toolId, digest) =>
        retryWhileStoreAway({ clock, signal }, () => consents.has({ userId, agentId, toolId }, digest)),
      decided: resumed?.decided ?? [],
    });
    const [{ provider, model }, { history, input, toStored }, offered] = await Promise.all([
      chooseModel(models, definition, turn.model, signal),
      said(signal, room),
      gatherTools(sources, wanted, { telemetry, written, argumentsFault, gate, userId }, signal),
    ]);
    const skilled = withSkills(definition, skills);
    const told = memory
      ? await retryWhileStoreAway({ clock, signal }, () => memory.toldTo(skilled, offered.definitions))
      : skilled;
    const caller = { userId, agentId, runId, providerId: provider, workflowDepth };
    const running = agentEngine.run(
      {
        agentId: turn.agentId,
        agent: told,
        provider,
        model,
        history,
        input,
        tools: offered.definitions,
        maxTurns: turn.maxTurns ?? definition.maxTurns ?? MAX_TURNS,
        caller,
        ...(resumed && { progress: resumed.state.progress }),
      },
      // An engine may drop the promises of these functions.
      withHandledRejections<ports.TurnContext>({
        signal,
        // Not steps of the work: a turn never goes on in the middle of one, so its work does not store them.
        step: async (_name, run) => {
          signal.throwIfAborted();
          await limited.check();
          return run(signal);
        },
        needsApproval: (call) => offered.mustWait(call),
        callTool: async (call, toolSignal) => {
          // An engine that ignores the signal still works after the end of its turn. Its calls have no effect then.
          signal.throwIfAborted();
          hasCalledTool = true;
          return trace.tool(call.toolId, gate.decisionOn(call), () => offered.call(call, caller, toolSignal));
        },
        ...(steering && {
          steering: async () => {
            const found = await retryWhileStoreAway({ clock, signal }, steering);
            // What an engine asks for after its end, or in a turn that is stopped, no model reads: the end says that it was not told.
            signal.throwIfAborted();
            if (isOver) return [];
            // Two calls at once find the same messages. All are said before the next await, so that only one of the calls has them.
            const messages = found.filter(({ id }) => !output.produced.steeredBy.includes(id));
            await Promise.all(messages.map((message) => output.steer(message)));
            return messages.map(({ text }) => [{ type: "text", text }]);
          },
        }),
        modelCalled: (call) => trace.modelCalled(call),
        say: (saying) => output.say(saying),
      }),
    );
    const ended = orAbandoned(running, signal, clock).finally(() => (isOver = true));
    const outcome = await ended.catch((error: unknown): PausedEnd => {
      if (!isPaused(error) || signal.aborted) throw error;
      return {
        status: "waiting",
        calls: error.calls.map((call) => ({ ...call, tool: askedTool(offered.definitions, call.toolId) })),
        state: {
          ...{ progress: error.progress, hasDelivered, trace: trace.toResume() },
          executedMs: executedMs + Math.max(0, clock.now() - beganAt),
        },
        timeoutMs: parseDuration(definition.toolPolicy?.approvalTimeout ?? toolPolicy.approvalTimeout)!,
      };
    });
    if ("status" in outcome) return outcome;
    const { output: text, messages, toolCalls, usage, end } = outcome;
    const summary = outcome.summary && toStored?.(outcome.summary);
    // An agent that sent its user a message has given its answer.
    const isWhole = end === "completed" || (end === "empty_answer" && hasDelivered);
    const { decided, steeredBy } = output.produced;
    const recorded = { messages: decided.ofMessages(messages), toolCalls: decided.ofCalls(toolCalls), steeredBy };
    return { status: "completed", output: text, ...recorded, usage, summary, ...(!isWhole && { reason: end }) };
  } catch (error) {
    const left = leftBehind(output.produced);
    if (stopping.aborted) return { ...left, status: "interrupted", reason: (stopping.reason as TurnStopped).reason };
    // The process stops in order and has waited for as long as it may: the turn is marked, not lost (open points 1).
    if (context.signal.aborted && context.signal.reason instanceof ports.EngineStopped)
      return { ...left, status: "interrupted", reason: "system_suspension" };
    context.signal.throwIfAborted();
    const { code, message } = failureOf(error);
    telemetry.log.warn("A turn failed", { turn: turn.turnId, run: turn.runId, agent: turn.agentId, code }, error);
    const isRepeatable = isProviderAway(error) && !hasCalledTool && output.produced.seq === 0;
    return { ...left, status: "failed", reason: "error", failure: { code, message }, ...(isRepeatable && { isRepeatable }) };
  } finally {
    limited.leave();
    room.close();
  }
}

/** Turns of agents without a memory do not load it. */
async function openMemory(given: PlayGiven, owner: MemoryOwner, options: ports.AgentMemory): Promise<MemoryOfTurn> {
  const { memoryOfTurn } = await import("../memory/memory-of-turn.ts");
  return memoryOfTurn(given, owner, options);
}

/** By name, because an engine may come with its own copy of the package. */
function isPaused(error: unknown): error is ports.TurnPaused {
  return error instanceof Error && error.name === "TurnPaused" && (error as ports.TurnPaused).calls.length > 0;
}

/** The engine was offered the tools that its calls name. */
function askedTool(offered: readonly ports.TurnTool[], toolId: string): AskedTool {
  const tool = offered.find(({ id }) => id === toolId);
  if (!tool) throw new TypeError("The engine waits for a tool that it was not offered");
  const { id, name, description, inputSchema, riskLevel } = tool;
  return { id, name, description, inputSchema, riskLevel, digest: toolDigest(tool) };
}

/** If an engine ignores its signal, its turn ends without it after a short time, and its further output is ignored. */
async function orAbandoned<T>(running: Promise<T>, signal: AbortSignal, clock: ports.Clock): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  let timer: ports.Timer | undefined;
  const onAbort = () => (timer = clock.after(ABANDONED_AFTER_MS, () => reject(signal.reason)));
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  running.catch(() => {});
  try {
    return await Promise.race([running, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    timer?.cancel();
  }
}

/** The text of a failure for a client: our own words, never those of an upstream or a library. */
function failureOf(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof TurnFailed) return { code: error.code, message: error.message };
  const name = error instanceof Error ? error.name : describeCause(error).name;
  if (name === "ModelUnreachable") return { code: "model_unreachable", message: "The model's provider cannot be reached" };
  if (name === "ModelTimeout") return { code: "model_timeout", message: "The model's provider did not answer in time" };
  // The provider's own message, without its credential and address, because users need it.
  if (name === "ModelRefused") return { code: "model_refused", message: (error as Error).message };
  if (name === "ModelOverloaded") return { code: "model_overloaded", message: (error as Error).message };
  if (name === "OutputInvalid") return { code: "output_invalid", message: (error as Error).message };
  if (name === "OutputSchemaInvalid") return { code: "output_schema_invalid", message: (error as Error).message };
  if (name === "AnswerBroken") return { code: "broken_answer", message: (error as Error).message };
  return { code: "internal_error", message: "The turn failed" };
}

/**
 * Whether a turn failed because its model's provider is away: no connection, no answer in time, or a refusal that passes, such as 429, 500
 * and an overload. Errors are compared by name, because an engine may bring its own copy of a package.
 */
export function isProviderAway(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < MOST_CAUSES; cause = cause.cause, depth++) {
    if (AWAY.has(cause.name)) return true;
    if (cause.name === "ModelRefused") return (cause as { readonly isPassing?: unknown }).isPassing === true;
  }
  return false;
}

const AWAY: ReadonlySet<string> = new Set(["ModelUnreachable", "ModelTimeout", "ModelOverloaded"]);
const MOST_CAUSES = 10;

/** Which provider and model play a turn: the query's model, else the agent's, else the provider's first. Throws TurnFailed. */
export async function chooseModel(
  models: readonly ports.ModelProvider[],
  agent: ports.AgentDefinition,
  asked: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly provider: string; readonly model: string }> {
  const wanted = asked ?? agent.model;
  const named = models.find(({ id }) => id === agent.provider);
  if (agent.provider !== undefined && !named)
    throw new TurnFailed("provider_unavailable", "The agent's provider is not configured");
  const candidates = named ? [named] : models;
  let unlisted: unknown;
  for (const provider of candidates) {
    // The model of the agent's own file is used without asking for a list.
    if (wanted !== undefined && named && asked === undefined) return { provider: provider.id, model: wanted };
    const served = await provider.listModels(signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      if (candidates.length > 1) {
        unlisted = cause;
        return [];
      }
      throw new TurnFailed("provider_unavailable", "The provider does not say which models it serves", { cause });
    });
    const model = wanted === undefined ? served[0] : served.find((each) => each === wanted);
    if (model !== undefined) return { provider: provider.id, model };
  }
  throw new TurnFailed(
    "model_unavailable",
    wanted === undefined ? "No provider serves a model" : "No provider serves this model",
    { cause: unlisted },
  );
}
