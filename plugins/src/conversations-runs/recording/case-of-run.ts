import type { ports } from "@portico/core";
import { maskCredentials } from "./mask-credentials.ts";
import { NotRecordable, type RecordedRun, type RecordedTurn } from "./recorded-turns.ts";

export { MASK } from "./mask-credentials.ts";
export { NotRecordable, readRecordedRun } from "./recorded-turns.ts";

type Part = ports.MessagePart;
type Call = Extract<Part, { type: "tool_call" }>;
type Result = Extract<Part, { type: "tool_result" }>;

interface Answer {
  text?: string;
  calls?: readonly { readonly tool: string; readonly arguments: unknown }[];
  stop?: string;
  usage?: { readonly input?: number | undefined; readonly output?: number | undefined };
  error?: { readonly kind: string };
}

/** Tools that a case executes, without an answer of the case. */
const EXECUTED = new Set(["SendUserMessage", "ReadAttachment", "ReadSkill"]);
/** Kinds of refusals in cases, by the code of a failed turn. */
const REFUSALS: Readonly<Record<string, string>> = { model_refused: "invalid-request", model_overloaded: "overloaded" };
/** How often the engine calls a model that is overloaded. */
const CALLS_OF_OVERLOAD = 3;
/** Ends in which the last answer of the model did not end by itself. Cases know only one kind of refusals. */
const STOPS: Readonly<Record<string, string>> = { max_tokens: "max_tokens", refusal: "refusal", content_filter: "refusal" };

/**
 * A file of cases for `portico agent test` with one case, which repeats the turns of a run. Credentials of the usual forms and the given secrets are
 * masked. Throws NotRecordable.
 */
export function caseFileOfTurns(run: RecordedRun, secrets: readonly string[] = []): Record<string, unknown> {
  const decided = new Set(run.turns.flatMap(callsOf).flatMap(({ toolId, decision }) => (decision ? [toolId] : [])));
  // In the tested instance, the tool may need no approval by itself.
  const tools = [...decided].map((id) => [id, { requiresConfirmation: true }]);
  const file = {
    agent: run.agentId,
    ...(tools.length > 0 && { tools: Object.fromEntries(tools) }),
    cases: [caseOf(run)],
  };
  return maskCredentials(file, secrets);
}

function caseOf({ runId, turns }: RecordedRun): Record<string, unknown> {
  const answers = turns.flatMap(answersOf);
  const tools = byTool(turns.flatMap(toolAnswersOf));
  const approvals = byTool(turns.flatMap(decisionsOf));
  const last = turns.at(-1)!;
  return {
    name: `like ${runId}`,
    messages: turns.map((turn) => {
      const { prompt } = turn;
      if (prompt === "") throw new NotRecordable("A message has only files, which cases do not have");
      return turn === last ? prompt : { text: prompt, expect: endOf(turn) };
    }),
    model: answers,
    ...(tools && { tools }),
    ...(approvals && { approvals }),
    expect: { ...endOf(last), calls: turns.flatMap(recordedCalls) },
  };
}

/** How a turn ended. Throws NotRecordable for ends that a case cannot repeat. */
function endOf({ receipt }: RecordedTurn): Record<string, unknown> {
  const { output, failure, interruption_reason: reason } = receipt;
  if (!failure) {
    if (reason !== undefined && !isTurnEnd(reason)) throw new NotRecordable(`A turn was stopped: ${reason}`);
    const stop = reason === undefined ? undefined : STOPS[reason];
    return { status: "completed", end: stop ?? reason ?? "completed", output };
  }
  if (REFUSALS[failure.code] === undefined)
    throw new NotRecordable(`A turn failed in a way that cases cannot repeat: ${failure.code}`);
  return { status: "failed", error: { code: failure.code } };
}

function isTurnEnd(reason: string): boolean {
  return STOPS[reason] !== undefined || reason === "max_turns" || reason === "empty_answer";
}

function answersOf(turn: RecordedTurn): readonly Answer[] {
  const { receipt, trace } = turn;
  const answers = turn.messages.filter(({ role }) => role === "assistant").map(({ parts }) => answerOf(parts as readonly Part[]));
  addEnd(answers, receipt);
  const spoken = answers.filter(({ error }) => !error);
  const measured = (trace?.entries ?? []).filter(({ kind, error }) => kind === "model" && error === undefined);
  // Another number means that the engine put pieces together, or that calls are missing from the trace.
  if (measured.length === spoken.length)
    for (const [at, { input_tokens: input, output_tokens: output }] of measured.entries())
      if (input !== undefined || output !== undefined) spoken[at]!.usage = { input, output };
  return answers;
}

function answerOf(parts: readonly Part[]): Answer {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const calls = parts
    .filter((part) => part.type === "tool_call")
    .map(({ toolId, arguments: args }) => ({ tool: toolId, arguments: args }));
  return {
    ...((texts.length > 0 || calls.length === 0) && { text: texts.join("\n\n") }),
    ...(calls.length > 0 && { calls }),
  };
}

/** Adds the answer with which a turn ended, as far as the conversation does not have it. */
function addEnd(answers: Answer[], { failure, interruption_reason: reason }: RecordedTurn["receipt"]): void {
  const last = answers.at(-1);
  const isOpen = !last || last.calls !== undefined;
  const kind = failure && REFUSALS[failure.code];
  if (kind !== undefined) {
    if (!isOpen) last.error = { kind };
    // The engine repeats the call before it gives up.
    else answers.push(...Array.from({ length: kind === "overloaded" ? CALLS_OF_OVERLOAD : 1 }, () => ({ error: { kind } })));
    return;
  }
  // Empty answers are not part of the conversation.
  if (isOpen && reason !== "max_turns") answers.push({ text: "" });
  const stop = reason === undefined ? undefined : STOPS[reason];
  if (stop !== undefined) answers.at(-1)!.stop = stop;
}

type Named<T> = readonly [toolId: string, value: T];

function callsOf({ messages }: RecordedTurn): readonly Call[] {
  return messages.flatMap(({ parts }) => (parts as readonly Part[]).filter((part) => part.type === "tool_call"));
}

function toolAnswersOf(turn: RecordedTurn): readonly Named<object>[] {
  const results = new Map<string, Result>();
  for (const { parts } of turn.messages)
    for (const part of parts as readonly Part[]) if (part.type === "tool_result") results.set(part.callId, part);
  return callsOf(turn).flatMap(({ callId, toolId, decision }): readonly Named<object>[] => {
    const result = results.get(callId)?.result;
    const isRun = decision === undefined || decision.status === "approved";
    if (!result || !isRun || EXECUTED.has(toolId)) return [];
    // The service tells the model of a person's words and changes.
    const hasNote = decision?.comment !== undefined || decision?.arguments !== undefined;
    const text = result.content.slice(hasNote ? 1 : 0).map((part) => (part.type === "text" ? part.text : `[${part.mimeType}]`));
    return [[toolId, result.isError ? { error: text.join("\n") } : { output: text.join("\n") }]];
  });
}

function decisionsOf(turn: RecordedTurn): readonly Named<unknown>[] {
  return callsOf(turn).flatMap(({ toolId, decision }): readonly Named<unknown>[] => {
    if (!decision) return [];
    const { status, arguments: args, comment } = decision;
    const word = status === "approved" ? "approve" : "reject";
    const more = { ...(args !== undefined && { arguments: args }), ...(comment !== undefined && { comment }) };
    return [[toolId, Object.keys(more).length === 0 ? word : { decision: word, ...more }]];
  });
}

/** The calls of a turn with the arguments that their tools got. Those that were too long to be kept are a text. */
function recordedCalls({ receipt }: RecordedTurn): readonly unknown[] {
  return (receipt.tool_calls as readonly { readonly tool_id: string; readonly arguments: unknown }[]).map(
    ({ tool_id: tool, arguments: args }) => (typeof args === "object" && args !== null ? { tool, arguments: args } : tool),
  );
}

/** The values of each tool in order; a single one without a list. Undefined without a value. */
function byTool<T>(named: readonly Named<T>[]): Readonly<Record<string, T | readonly T[]>> | undefined {
  if (named.length === 0) return undefined;
  const lists = Map.groupBy(named, ([toolId]) => toolId);
  return Object.fromEntries(
    [...lists].map(([toolId, each]) => [toolId, each.length === 1 ? each[0]![1] : each.map(([, value]) => value)]),
  );
}
