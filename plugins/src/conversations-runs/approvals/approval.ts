import { hash } from "node:crypto";
import type { ports } from "@portico/core";
import { EVENT_CHARACTERS } from "../limits.ts";
import { boundedValue } from "../turns/bounds.ts";
import { type Decision, STATUS } from "../turns/recorded-call.ts";

/** A tool as it was when its call was put before a person. */
export interface AskedTool extends Pick<ports.ToolDefinition, "id" | "name" | "description" | "inputSchema" | "riskLevel"> {
  readonly digest: string;
}

/** One call of a tool that a person decides. It stays until its run is removed, so that a second decision finds the first. */
export interface Approval {
  readonly runId: string;
  /** Names it in its run and in paths: the ID of the call, or another one if that is unfit, with a number if the run used it before. */
  readonly callId: string;
  readonly turnId: string;
  /** The wait of its turn that it belongs to. */
  readonly wait: number;
  readonly userId: string;
  readonly agentId: string;
  readonly sessionId: string;
  readonly conversationId?: string | undefined;
  readonly clientRequestId?: string | undefined;
  readonly background?: true | undefined;
  /** The model's ID of the call. */
  readonly toolCallId: string;
  readonly tool: AskedTool;
  /** As they are shown: very long ones are left out. */
  readonly arguments: unknown;
  /** Of the complete arguments. */
  readonly argumentsDigest: string;
  /** Milliseconds since 1970. */
  readonly askedAt: number;
  readonly expiresAt: number;
  /** Set until it is decided. */
  readonly isOpen?: true | undefined;
  readonly decided?: Decision | undefined;
}

/** The collection of approvals. */
export const approvalsSpec: ports.CollectionSpec = {
  name: "approvals",
  indexes: {
    byTime: ["isOpen", "askedAt"],
    byUser: ["isOpen", "userId", "askedAt"],
    byLimit: ["isOpen", "expiresAt"],
    byRun: ["runId"],
  },
};

/** The ID of the record: IDs of calls are made by models and may be any text. */
export function approvalId(runId: string, callId: string): string {
  return `${runId}/${hash("sha256", callId, "base64url")}`;
}

/** An approval after its end. */
export function decided({ isOpen: _isOpen, ...approval }: Approval, decision: Decision): Approval {
  return { ...approval, decided: decision };
}

/** What a run shows of a call that waits. */
export function shownInRun({ callId, tool, askedAt, expiresAt }: Approval) {
  return {
    call_id: callId,
    tool_id: tool.id,
    risk_level: tool.riskLevel,
    asked_at: new Date(askedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  };
}

/** What the clients of a turn are told: once when it waits, and once when the turn goes on. */
export function approvalContent({ callId, toolCallId, tool, arguments: args, expiresAt, decided: decision }: Approval) {
  const call = { callId, ...(callId !== toolCallId && { toolCallId }), toolId: tool.id, name: tool.name };
  if (!decision) {
    return {
      ...call,
      status: "waiting",
      riskLevel: tool.riskLevel,
      arguments: args,
      expiresAt: new Date(expiresAt).toISOString(),
    };
  }
  return {
    ...call,
    status: STATUS[decision.decision],
    ...(decision.userId !== undefined && { decidedBy: decision.userId }),
    decidedAt: new Date(decision.at).toISOString(),
    ...(decision.arguments !== undefined && { arguments: boundedValue(decision.arguments, EVENT_CHARACTERS / 2) }),
    ...(decision.comment !== undefined && { comment: decision.comment }),
  };
}
