import type { ports } from "@portico/core";
import { cutResult } from "./context-window.ts";

/** One tool call of an answer. `arguments` is undefined if they were invalid JSON. */
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

/**
 * Runs the tools that one answer calls: those of a lane one after another, all others in parallel. A call is reported when it
 * begins. Returns the results in the order of the calls. Each call is a step named `tool-COUNT-PLACE`. Throws the signal's
 * reason.
 */
export function callTools(given: CallToolsGiven, calls: readonly AskedCall[], count: number): Promise<readonly ToolResultPart[]> {
  const lanes = new Map<string, Promise<unknown>>();
  return Promise.all(
    calls.map((call, at) => {
      const run = () => callTool(given, call, `tool-${count}-${at + 1}`);
      const lane = given.tools.find(({ id }) => id === call.toolId)?.lane;
      if (lane === undefined) return run();
      const called = lanes.get(lane)?.then(run) ?? run();
      lanes.set(lane, called);
      return called;
    }),
  );
}

async function callTool(given: CallToolsGiven, call: AskedCall, stepName: string): Promise<ToolResultPart> {
  const { callId, toolId, name } = call;
  const { say, signal } = given.context;
  await say({ type: "tool_call", callId, toolId, name, arguments: call.arguments ?? {} });
  const result = await resultOf(given, call, stepName);
  signal.throwIfAborted();
  await say({ type: "tool_result", callId, toolId, result });
  return { type: "tool_result", callId, toolId, name, result };
}

async function resultOf(
  { context, resultCharacters }: CallToolsGiven,
  { toolId, ...call }: AskedCall,
  stepName: string,
): Promise<ports.ToolResult> {
  if (call.arguments === undefined) return problem("The arguments are not JSON");
  try {
    return await context.step(stepName, async (signal) =>
      cutResult(await context.callTool({ toolId, arguments: call.arguments }, signal), resultCharacters),
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
