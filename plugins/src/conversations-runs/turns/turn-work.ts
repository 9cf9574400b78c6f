import { describeCause, ports } from "@portico/core";
import { readHistory } from "../conversations/messages.ts";
import type { Audiences } from "../delivery/audiences.ts";
import { EVENT_CHARACTERS } from "../limits.ts";
import { boundedText } from "./bounds.ts";
import { builtInTools, type Delegate } from "./built-in-tools.ts";
import { chooseModel } from "./model-choice.ts";
import { isStoreAway, persistently } from "./persistently.ts";
import { Produced } from "./produced.ts";
import { readTranscript, Transcript } from "./transcript.ts";
import { identifiersOf, type Turn, type TurnEvent, transcriptStream } from "./turn.ts";
import type { TurnDesk } from "./turn-desk.ts";
import { TurnFailed, type TurnStopped } from "./turn-failed.ts";
import type { TurnEnd, TurnRecords } from "./turn-records.ts";
import { gatherTools } from "./turn-tools.ts";
import { TurnVoice } from "./turn-voice.ts";

export interface TurnWorkGiven {
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly agents: ports.Agents;
  readonly agentEngines: readonly ports.AgentEngine[];
  readonly models: readonly ports.ModelProvider[];
  readonly tools: readonly ports.ToolSource[];
  readonly telemetry: ports.Telemetry;
  readonly records: TurnRecords;
  readonly desk: TurnDesk;
  readonly audiences: Audiences;
  readonly delegate: Delegate;
}

/** What the engine is told of turns: how one is executed, and how one is closed that was executing when its process died. */
export function createTurnWork(given: TurnWorkGiven) {
  const { log, clock, records, desk, audiences } = given;

  /** Executes one turn. What goes wrong in it is its end, and no failure of the work. */
  const run = async (context: ports.WorkContext, turn: Turn): Promise<TurnEnd> => {
    const listener = { userId: turn.userId, clientInstanceId: turn.clientInstanceId ?? "" };
    const transcript: Transcript = new Transcript(turn.turnId, {
      log,
      clock,
      told: (event, position, size) => audiences.tell(listener, watched, event, position, size),
    });
    const watched = audiences.watch(listener, turn.clientRequestId, transcript);
    const voice = new TurnVoice(turn, transcript);
    const { signal: stopping, leave } = desk.enter(turn);
    try {
      const { stop } = await persistently(clock, context.signal, () => records.begin(turn));
      audiences.announce(listener, statusEvent(turn, "running"));
      void transcript.add({ event: "query:started", data: identifiersOf(turn) }, 0);
      const end =
        stop === undefined
          ? await play(given, { context, turn, voice, stopping })
          : { ...nothing, status: "interrupted" as const, reason: stop };
      await finish(turn, end, voice, transcript, context.signal);
      audiences.announce(listener, statusEvent(turn, statusAfter(turn, end)));
      return end;
    } finally {
      transcript.stop();
      audiences.finish(listener, watched);
      leave();
    }
  };

  /** The end is written, however long the stores take and whatever it holds: nothing of a turn may be left open. */
  const finish = async (
    turn: Turn,
    end: TurnEnd,
    voice: TurnVoice,
    transcript: Transcript,
    signal: AbortSignal,
  ): Promise<void> => {
    const write = (ended: TurnEnd) =>
      persistently(clock, signal, () =>
        transcript.end([endEvent(turn, ended, voice.seq)], (entry) => records.end(turn, ended, entry)),
      );
    try {
      await write(end);
    } catch (error) {
      if (isStoreAway(error) || error instanceof ports.EngineFenced) throw error;
      given.telemetry.log.error("The end of a turn could not be kept as it was", { turn: turn.turnId }, error);
      transcript.forgetHeld();
      await write(unkept);
    }
  };

  /** Closes a turn whose process died: failed, with what it had said kept (open points 9). */
  const closed = async (turn: Turn): Promise<void> => {
    const produced = new Produced();
    for await (const event of readTranscript(log, turn.turnId)) produced.add(event);
    const end: TurnEnd = { ...leftBehind(produced), status: "failed", reason: "process_restart" };
    const write = (ended: TurnEnd) =>
      records.end(turn, ended, {
        stream: transcriptStream(turn.turnId),
        entry: { events: [endEvent(turn, ended, produced.seq)] },
      });
    try {
      await write(end);
    } catch (error) {
      if (isStoreAway(error)) throw error;
      await write({ ...nothing, status: "failed", reason: "process_restart" });
    }
  };

  return { run, closed };
}

const nothing = { output: "", messages: [], toolCalls: [] };
/** What stands in for an end that no store takes. */
const unkept: TurnEnd = {
  ...nothing,
  status: "failed",
  reason: "error",
  failure: { code: "internal_error", message: "What the turn produced could not be kept" },
};

/** From the agent's definition to the end of its words. */
async function play(
  given: TurnWorkGiven,
  {
    context,
    turn,
    voice,
    stopping,
  }: {
    readonly context: ports.WorkContext;
    readonly turn: Turn;
    readonly voice: TurnVoice;
    readonly stopping: AbortSignal;
  },
): Promise<TurnEnd> {
  const { telemetry, log, agents, agentEngines, models, tools, delegate } = given;
  const signal = AbortSignal.any([context.signal, stopping]);
  try {
    const agent = await agents.find(turn.agentId);
    if (!agent) throw new TurnFailed("agent_unavailable", "The agent is not there any more");
    if (agent.metadataError) throw new TurnFailed("agent_unavailable", "The agent's agent.json cannot be used");
    const { definition } = agent;
    const agentEngine = agentEngines.find(({ id }) => id === definition.engine);
    if (!agentEngine) throw new TurnFailed("engine_unavailable", "The agent's engine is not installed");
    const [{ provider, model }, history, offered] = await Promise.all([
      chooseModel(models, definition, turn.model, signal),
      earlierTurns(log, turn, signal),
      gatherTools([builtInTools({ turn, voice, delegate }), ...tools], definition.tools, telemetry.log, signal),
    ]);
    const caller = { userId: turn.userId, agentId: turn.agentId, runId: turn.runId, providerId: provider };
    const outcome = await agentEngine.run(
      {
        agentId: turn.agentId,
        agent: definition,
        provider,
        model,
        history,
        input: [{ type: "text", text: turn.prompt }],
        tools: offered.definitions,
        maxTurns: turn.maxTurns,
        caller,
      },
      {
        signal,
        step: (name, work, options) => context.step(name, (stepSignal) => work(AbortSignal.any([stepSignal, stopping])), options),
        callTool: (call, toolSignal) => offered.call(call, caller, toolSignal),
        say: (saying) => voice.say(saying),
      },
    );
    const { output, messages, toolCalls, usage, end } = outcome;
    return { status: "completed", output, messages, toolCalls, usage, ...(end === "max_turns" && { isCut: true, reason: end }) };
  } catch (error) {
    if (stopping.aborted) return interrupted(voice.produced, (stopping.reason as TurnStopped).reason);
    // The process stops in order and has waited for as long as it may: the turn is marked, not lost (open points 1).
    if (context.signal.aborted && context.signal.reason instanceof ports.EngineStopped)
      return interrupted(voice.produced, "system_suspension");
    context.signal.throwIfAborted();
    const { code, message } = failureOf(error);
    telemetry.log.warn("A turn failed", { turn: turn.turnId, agent: turn.agentId, code }, error);
    return { ...leftBehind(voice.produced), status: "failed", reason: "error", failure: { code, message } };
  }
}

/** The user message of this turn is the newest: it is what the agent is told now, and no history. */
async function earlierTurns(log: ports.EventLog, turn: Turn, signal: AbortSignal): Promise<readonly ports.ConversationMessage[]> {
  return (await readHistory(log, turn.conversationId, signal)).slice(0, -1);
}

function interrupted(produced: Produced, reason: string): TurnEnd {
  return { ...leftBehind(produced), status: "interrupted", reason };
}

/** Calls without their results would confuse the model of the next turn: of a turn that broke off its words are kept. */
function leftBehind({ output, toolCalls }: Produced): Omit<TurnEnd, "status"> {
  const messages: readonly ports.ConversationMessage[] =
    output === "" ? [] : [{ role: "assistant", parts: [{ type: "text", text: output }] }];
  return { output, toolCalls, messages };
}

/** `seq` is the last message's, so that a client knows whether it has all of them. */
function endEvent(turn: Turn, end: TurnEnd, seq: number): TurnEvent {
  const identifiers = { ...identifiersOf(turn), seq };
  switch (end.status) {
    case "completed":
      return {
        event: "query:complete",
        data: {
          ...identifiers,
          terminal: { status: "completed", ...(end.reason !== undefined && { reason: end.reason }), runId: turn.runId },
          result: { output: boundedText(end.output, EVENT_CHARACTERS), ...(end.usage && { usage: end.usage }) },
        },
      };
    case "interrupted":
      return {
        event: "query:complete",
        data: {
          ...identifiers,
          terminal: {
            status: "interrupted",
            ...(end.reason !== undefined && { reason: end.reason }),
            partial: boundedText(end.output, EVENT_CHARACTERS),
            runId: turn.runId,
          },
        },
      };
    case "failed": {
      const { code, message } = end.failure ?? {
        code: end.reason ?? "error",
        message: "The service was restarted while the turn executed",
      };
      return { event: "query:error", data: { ...identifiers, error: message, code } };
    }
  }
}

function statusAfter(turn: Turn, end: TurnEnd): "idle" | "completed" | "failed" {
  if (end.status === "failed") return "failed";
  return end.status === "completed" && turn.delegation ? "completed" : "idle";
}

function statusEvent({ runId, sessionId }: Turn, status: "running" | "idle" | "completed" | "failed"): TurnEvent {
  return { event: "activity:run_status", data: { runId, status, sessionId } };
}

/** What a client may read of a failure: our own words, and never those of an upstream or a library. */
function failureOf(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof TurnFailed) return { code: error.code, message: error.message };
  const name = error instanceof Error ? error.name : describeCause(error).name;
  if (name === "ModelUnreachable") return { code: "model_unreachable", message: "The model's provider cannot be reached" };
  if (name === "ModelTimeout") return { code: "model_timeout", message: "The model's provider did not answer in time" };
  // The provider's own words, without its credential and address: whoever asks needs them.
  if (name === "ModelRefused") return { code: "model_refused", message: (error as Error).message };
  return { code: "internal_error", message: "The turn failed" };
}
