import type { ports } from "@portico/core";
import { cutResult } from "./context-window.ts";

/** One tool call of an answer. `arguments` is undefined if they were not a JSON object. */
export interface AskedCall {
  readonly callId: string;
  readonly toolId: string;
  readonly name: string;
  readonly arguments?: unknown;
}

export type ToolResultPart = Extract<ports.MessagePart, { type: "tool_result" }>;

export interface CallToolsGiven {
  readonly context: ports.TurnContext;
  readonly tools: readonly ports.TurnTool[];
  /** Maximum characters of a result that the model gets. */
  readonly resultCharacters: number;
}

/** What happened to a call before a pause. */
export interface CalledBefore {
  readonly result?: ToolResultPart | undefined;
  /** The call was reported. */
  readonly isSaid: boolean;
}

/** The calls of an answer, of which none was run yet. */
export const noneCalled = (calls: readonly AskedCall[]): readonly CalledBefore[] => calls.map(() => ({ isSaid: false }));

/** The results of an answer's calls. */
export interface Called {
  /** In the order of the calls. Undefined for calls that wait, and for calls that must run after them. */
  readonly results: readonly (ToolResultPart | undefined)[];
  /** The calls that a person must approve first. Empty: all calls have results. */
  readonly waiting: readonly AskedCall[];
}

/**
 * Runs the tools that one answer calls: those of a lane one after another, all others in parallel. A call is reported when it
 * begins. Each call is a step named `tool-COUNT-PLACE`. All calls that need a person's approval are reported together, and not run.
 * Calls behind them in their lane are not run either. Throws the signal's reason.
 */
export async function callTools(
  given: CallToolsGiven,
  calls: readonly AskedCall[],
  count: number,
  before: readonly CalledBefore[],
): Promise<Called> {
  const asks = await Promise.all(calls.map((call, at) => before[at]!.result === undefined && needsApproval(given, call)));
  const lanes = new Map<string, Promise<unknown> | "waits">();
  const waiting: AskedCall[] = [];
  const results = await Promise.all(
    calls.map(async (call, at): Promise<ToolResultPart | undefined> => {
      const { result, isSaid } = before[at]!;
      if (result) return result;
      const lane = given.tools.find(({ id }) => id === call.toolId)?.lane;
      const earlier = lane === undefined ? undefined : lanes.get(lane);
      if (asks[at]) {
        if (lane !== undefined) lanes.set(lane, "waits");
        waiting.push(call);
        if (!isSaid) await sayCall(given, call);
        return undefined;
      }
      if (earlier === "waits") return undefined;
      const run = () => callTool(given, call, `tool-${count}-${at + 1}`, isSaid);
      const called = earlier?.then(run) ?? run();
      if (lane !== undefined) lanes.set(lane, called);
      return called;
    }),
  );
  given.context.signal.throwIfAborted();
  return { results, waiting };
}

async function needsApproval({ context }: CallToolsGiven, { callId, toolId, arguments: args }: AskedCall): Promise<boolean> {
  if (args === undefined) return false;
  return (await context.needsApproval?.({ callId, toolId, arguments: args })) ?? false;
}

async function sayCall({ context }: CallToolsGiven, { callId, toolId, name, arguments: args = {} }: AskedCall): Promise<void> {
  await context.say({ type: "tool_call", callId, toolId, name, arguments: args });
}

async function callTool(given: CallToolsGiven, call: AskedCall, stepName: string, isSaid: boolean): Promise<ToolResultPart> {
  const { callId, toolId, name } = call;
  const { say, signal } = given.context;
  if (!isSaid) await sayCall(given, call);
  const result = await resultOf(given, call, stepName);
  signal.throwIfAborted();
  await say({ type: "tool_result", callId, toolId, result });
  return { type: "tool_result", callId, toolId, name, result };
}

async function resultOf(
  { context, resultCharacters }: CallToolsGiven,
  { callId, toolId, ...call }: AskedCall,
  stepName: string,
): Promise<ports.ToolResult> {
  if (call.arguments === undefined) return problem("The arguments are not a JSON object");
  try {
    return await context.step(stepName, async (signal) =>
      cutResult(await context.callTool({ callId, toolId, arguments: call.arguments }, signal), resultCharacters),
    );
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof Error && error.name === "StepInterrupted") {
      return problem("The process stopped while the tool ran: it is unknown whether the tool took effect");
    }
    throw error;
  }
}

function problem(text: string): ports.ToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
