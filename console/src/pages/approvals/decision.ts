import { visibleText } from "@portico/core/contract";
import { type Approval, keyOfCall, keyOfGate, type WaitingGate } from "../../api/waiting.svelte.ts";
import { routeTo } from "../../shell/route.svelte.ts";

interface Common {
  readonly key: string;
  /** What a person decides, in a few words. */
  readonly what: string;
  /** The agent or the workflow that asks. */
  readonly from: { readonly id: string; readonly name: string; readonly href: string };
  /** The user for whom it asks. */
  readonly user: string | undefined;
  /** ISO 8601. */
  readonly askedAt: string;
  readonly expiresAt: string | undefined;
  /** Whether the signed-in user may decide it. */
  readonly isOwn: boolean;
  /** Whether it may be approved with others, without a look at each: a call of a tool with a low risk, and a gate that asks for no values. */
  readonly isHarmless: boolean;
}

/** One line of the inbox: a call of a tool, or a gate of a workflow. */
export type Decision = Common &
  ({ readonly kind: "call"; readonly call: Approval } | { readonly kind: "gate"; readonly waiting: WaitingGate });

/** The decisions of an agent or of a workflow. */
export interface DecisionGroup {
  readonly from: Decision["from"];
  readonly decisions: readonly Decision[];
}

/** The orders of the inbox. */
export const ORDERS = { newest: "Newest first", soonest: "Soonest to expire first" } as const;
export type Order = keyof typeof ORDERS;

/** A waiting call as a line. */
export function ofCall(call: Approval): Decision {
  const { agentId, userId, askedAt, expiresAt, riskLevel } = call;
  const name = visibleText(agentId);
  return {
    ...{
      kind: "call",
      call,
      key: keyOfCall(call),
      what: visibleText(call.toolName),
      user: visibleText(userId),
      askedAt,
      expiresAt,
    },
    from: { id: `agent ${agentId}`, name, href: routeTo("agents", agentId) },
    isOwn: true,
    isHarmless: riskLevel === "low",
  };
}

/** A waiting gate as a line. Only an owner decides at gates. */
export function ofGate(waiting: WaitingGate, isOwner: boolean): Decision {
  const { workflowId, workflowName, userId, gate } = waiting;
  const fields = (gate.form?.["properties"] ?? {}) as Readonly<Record<string, unknown>>;
  return {
    ...{ kind: "gate", waiting, key: keyOfGate(waiting), what: visibleText(gate.title) },
    from: { id: `workflow ${workflowId}`, name: visibleText(workflowName), href: routeTo("workflows", workflowId) },
    user: userId === undefined ? undefined : visibleText(userId),
    ...{ askedAt: gate.requestedAt, expiresAt: gate.expiresAt, isOwn: isOwner },
    isHarmless: gate.form === undefined || Object.keys(fields).length === 0,
  };
}

/** Those without an end of their time come last. */
export function inOrder(decisions: readonly Decision[], order: Order): readonly Decision[] {
  const newest = (a: Decision, b: Decision) => Date.parse(b.askedAt) - Date.parse(a.askedAt) || a.key.localeCompare(b.key);
  if (order === "newest") return decisions.toSorted(newest);
  const endOf = ({ expiresAt }: Decision) => (expiresAt === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(expiresAt));
  return decisions.toSorted((a, b) => endOf(a) - endOf(b) || newest(a, b));
}

/** The groups are in the order of their first decisions. */
export function inGroups(decisions: readonly Decision[]): readonly DecisionGroup[] {
  const groups = Map.groupBy(decisions, ({ from }) => from.id);
  return [...groups.values()].map((each) => ({ from: each[0]!.from, decisions: each }));
}
