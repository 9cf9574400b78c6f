import { addModelUsage, type ports } from "@portico/core";
import { RECEIPT_TEXT_CHARACTERS, RUN_ERROR_CHARACTERS } from "../limits.ts";
import type { Receipt } from "../runs/receipts.ts";
import { CANCELLED } from "../runs/run-outcome.ts";
import { type Run, withEvent } from "../runs/runs.ts";
import { boundedCalls, boundedText } from "./bounds.ts";
import type { Produced } from "./produced.ts";
import { type ReceiptStep, receiptSteps } from "./receipt-steps.ts";
import type { RecordedCall } from "./recorded-call.ts";
import type { StoredTrace } from "../trace-entry.ts";
import type { PlayedTurn, StoredSummary } from "./turn.ts";

/** How a turn ended, and what it leaves behind. */
export interface TurnEnd {
  readonly status: "completed" | "interrupted" | "failed";
  readonly output: string;
  readonly messages: readonly ports.ConversationMessage[];
  readonly toolCalls: readonly RecordedCall[];
  /** The IDs of the user's messages that its agent was told while it went on. */
  readonly steeredBy?: readonly string[] | undefined;
  /** What its engine says that it used. */
  readonly usage?: ports.TurnUsage | undefined;
  /** What its model calls used, also if it failed. Absent if its engine reports no calls, and if its process died. */
  readonly spent?: ports.ModelUsage | undefined;
  /** What the conversation keeps in place of its oldest messages when its next turn begins. */
  readonly summary?: StoredSummary | undefined;
  /** Why it was interrupted or failed, or why it completed other than by its agent's own decision (open points 13). */
  readonly reason?: string | undefined;
  /** How it spent its time. Absent if its process died. */
  readonly trace?: StoredTrace | undefined;
  /** What the user is told of a failure. */
  readonly failure?: { readonly code: string; readonly message: string } | undefined;
  /** The model's provider was away before the turn said or did anything: it can be played again from its beginning. */
  readonly isRepeatable?: true | undefined;
}

/** Why a turn failed that could not be executed, for a reason outside of its agent. */
export const couldNotExecute = {
  reason: "error",
  failure: { code: "internal_error", message: "The turn could not be executed" },
} as const satisfies Partial<TurnEnd>;

/** What a turn that broke off leaves behind: the next one is told which tools ran, so that it does not repeat their effects. */
export function leftBehind({ output, toolCalls, messages, steeredBy }: Produced): Omit<TurnEnd, "status"> {
  return { output, toolCalls, messages, steeredBy };
}

/** The end of a turn of which nothing is kept. */
export const nothing = { output: "", messages: [], toolCalls: [] };

/** The receipt of a turn that ends at this time (ISO 8601; specification 2.12). */
export function toReceipt(
  turn: PlayedTurn,
  end: TurnEnd,
  run: Run,
  { id, at }: { readonly id: string; readonly at: string },
): Receipt & { readonly trace?: StoredTrace; readonly steps?: readonly ReceiptStep[] } {
  const started = run.turn_started_at ?? at;
  return {
    receipt_id: id,
    run_id: turn.runId,
    ...(turn.clientRequestId !== undefined && { client_request_id: turn.clientRequestId }),
    goal: boundedText(turn.prompt, RECEIPT_TEXT_CHARACTERS / 4),
    input: boundedText(turn.prompt, RECEIPT_TEXT_CHARACTERS),
    output: boundedText(end.output, RECEIPT_TEXT_CHARACTERS),
    tool_calls: boundedCalls(end.toolCalls).map(({ callId, toolId, name, arguments: args, isError, proposed, decision }) => ({
      id: callId,
      tool_id: toolId,
      name,
      arguments: args,
      is_error: isError,
      ...(proposed !== undefined && { proposed_arguments: proposed }),
      ...(decision && {
        decision: {
          status: decision.status,
          ...(decision.decidedBy !== undefined && { user_id: decision.decidedBy }),
          ...(decision.decidedAt !== undefined && { at: decision.decidedAt }),
          ...(decision.comment !== undefined && { comment: decision.comment }),
        },
      }),
    })),
    outcome: {
      status: outcomeOf(end),
      // No stop was requested: the agent stopped by itself.
      auto_completed: end.status === "completed" && end.reason === undefined,
    },
    started_at: started,
    completed_at: at,
    ...(end.usage && { usage: end.usage }),
    duration_ms: Math.max(Date.parse(at) - Date.parse(started), 0),
    ...(end.status !== "failed" && end.reason !== undefined && { interruption_reason: end.reason }),
    ...(end.failure && { failure: end.failure }),
    ...(end.messages.length > 0 && { steps: receiptSteps(end.messages) }),
    ...(end.trace && { trace: end.trace }),
  };
}

/** Open points 13: a turn that ended other than by its agent's decision did its work in part, or brought nothing at all. */
function outcomeOf({ status, reason, output, toolCalls }: TurnEnd): Receipt["outcome"]["status"] {
  if (status === "failed") return "failed";
  if (status === "interrupted") return "partial";
  if (reason === undefined) return "success";
  return output.trim() === "" && toolCalls.length === 0 ? "failed" : "partial";
}

/** A run with the time and the usage of a turn that ends at this time (ISO 8601). */
export function withSpent(run: Run, { spent, usage: reported }: TurnEnd, at: string): Run {
  const used = spent ?? (reported && { inputTokens: reported.inputTokens, outputTokens: reported.outputTokens });
  const usage = used ? addModelUsage(run.usage, used) : run.usage;
  const turnMs = Math.max(Date.parse(at) - Date.parse(run.turn_started_at ?? at), 0);
  return { ...run, duration_ms: (run.duration_ms ?? 0) + turnMs, ...(usage && { usage }) };
}

/** A run after the end of its turn. */
export function endRun(begun: Run, turn: PlayedTurn, end: TurnEnd, at: string): Run {
  const run = { ...withSpent(begun, end, at), turn_ended_at: at };
  switch (end.status) {
    case "interrupted": {
      const facts = { interruption_reason: end.reason, interrupted_at: at };
      // No stop was requested: the turn exceeded its time (specification 2.11).
      if (end.reason === "background_timeout")
        return withEvent(run, "turn-failed", at, { ...facts, failure_reason: "timeout", completed_at: at });
      return withEvent(run, "turn-interrupted", at, facts);
    }
    case "failed":
      return withEvent(run, "turn-failed", at, {
        failure_reason: end.reason,
        completed_at: at,
        ...runFailure(end),
      });
    case "completed": {
      const facts = end.reason !== undefined && { completion_reason: end.reason };
      const idle = withEvent(run, "turn-completed", at, { ...facts });
      return isOnlyTurn(turn) ? withEvent(idle, "closed", at, { ...facts, completed_at: at }) : idle;
    }
  }
}

/** The failure of a turn as its run shows it: the beginning of the message, and the provider of the model call that failed. */
export function runFailure({ failure, trace }: TurnEnd): Pick<Run, "failure"> {
  if (!failure) return {};
  const provider = trace?.entries.findLast(({ kind, error }) => kind === "model" && error !== undefined)?.provider;
  const message = boundedText(failure.message, RUN_ERROR_CHARACTERS);
  return { failure: { code: failure.code, message, ...(provider !== undefined && { provider }) } };
}

/** What a run comes to with this end. */
export function statusAfter(turn: PlayedTurn, end: TurnEnd): "idle" | "completed" | "failed" {
  if (end.status === "failed") return "failed";
  return end.status === "completed" && isOnlyTurn(turn) ? "completed" : "idle";
}

/** A delegated task and a background turn are one turn, and then it is done. */
function isOnlyTurn({ delegation, conversationId }: PlayedTurn): boolean {
  return delegation !== undefined || conversationId === undefined;
}

/** An ended turn as the port `usage` counts it. `endedAt` is in milliseconds since 1970. */
export function endedTurn(turn: PlayedTurn, { status, reason }: TurnEnd, run: Run, endedAt: number): ports.EndedWork {
  const began = run.turn_started_at;
  return {
    kind: "turn",
    name: turn.agentId,
    outcome: status === "interrupted" && CANCELLED.includes(reason) ? "cancelled" : status,
    durationMs: began === undefined ? undefined : Math.max(0, endedAt - Date.parse(began)),
  };
}

/**
 * Milliseconds since 1970: now, or the latest of what was noted earlier where the clock has stepped back behind it, so that nothing ends before it
 * began. Texts are ISO 8601.
 */
export function notBefore(now: number, ...earlier: readonly (string | number | undefined)[]): number {
  return earlier.reduce<number>((latest, time) => {
    const noted = typeof time === "string" ? Date.parse(time) : time;
    return noted !== undefined && noted > latest ? noted : latest;
  }, now);
}
