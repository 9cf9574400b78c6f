import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";

type Page = CallResult<(typeof conversationsRunsContract)["approvals"]>;

/** A call of a tool that waits for a person's decision. */
export type Approval = Page["approvals"][number];
/** A standing consent: calls of this tool by this agent for this user run without a decision, until the tool changes. */
export type ToolConsent = CallResult<(typeof conversationsRunsContract)["consents"]>["consents"][number];
/** The service's answer to a decision. `decidedAt` is in ISO 8601. */
export type DecidedApproval = CallResult<(typeof conversationsRunsContract)["decideApproval"]>;

/** What a person decides about a call. The model reads `comment`, which has at most 4,096 characters. */
export type ApprovalDecision =
  | {
      readonly decision: "approve";
      /** In place of the model's arguments. They must fit the tool's schema. */
      readonly arguments?: Readonly<Record<string, unknown>> | undefined;
      readonly comment?: string | undefined;
    }
  | {
      readonly decision: "approve";
      /** `true` also approves all later calls of this tool that the agent makes for the run's user. */
      readonly standing: boolean;
      readonly comment?: string | undefined;
    }
  | { readonly decision: "reject"; readonly comment?: string | undefined };

/**
 * What a turn tells about one of its calls: once when the call begins to wait, and once when the turn goes on. The content of a message
 * whose `type` is `approval`.
 */
export type ApprovalChange = ApprovalAsked | ApprovalEnded;

/** A call begins to wait. */
export interface ApprovalAsked extends ApprovalCall {
  readonly status: "waiting";
  readonly riskLevel: Approval["riskLevel"];
  /** What the model called the tool with. A text instead if they are too long to be shown. */
  readonly arguments: unknown;
  /** ISO 8601. Without a decision until then, the call does not run. */
  readonly expiresAt: string;
}

/** A call waits no more. `expired`: no decision came in time. `withdrawn`: the turn was stopped. */
export interface ApprovalEnded extends ApprovalCall {
  readonly status: "approved" | "rejected" | "expired" | "withdrawn";
  /** The user who decided. */
  readonly decidedBy?: string | undefined;
  /** ISO 8601. Absent without a decision. */
  readonly decidedAt?: string | undefined;
  /** What the tool gets in place of the model's arguments. */
  readonly arguments?: unknown;
  readonly comment?: string | undefined;
}

interface ApprovalCall {
  /** Names the call in its run, for a decision. */
  readonly callId: string;
  /** The model's ID of the call, as in its `tool_call`, if it is not the same. */
  readonly toolCallId?: string | undefined;
  readonly toolId: string;
  /** The tool's name. */
  readonly name: string;
}

/** Reads page after page. `read` gets the `next` of the page before. */
export async function* eachApproval(read: (after: string | undefined) => Promise<Page>): AsyncGenerator<Approval, void> {
  let after: string | undefined;
  do {
    const page = await read(after);
    yield* page.approvals;
    after = page.next;
  } while (after !== undefined);
}
