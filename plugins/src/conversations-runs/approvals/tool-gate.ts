import type { ports } from "@portico/core";
import type { Decision } from "../turns/recorded-call.ts";
import type { ArgumentsFault } from "../turns/tool-arguments.ts";
import type { Approval } from "./approval.ts";
import { digestOf, toolDigest } from "./digest.ts";

/** A call as the engine of a turn makes it. */
export interface GatedCall {
  readonly callId?: string | undefined;
  readonly toolId: string;
  readonly arguments: unknown;
}

/** The call may run, with these arguments, or not. `note` is for the model. */
export type Admitted =
  | { readonly isRefused: false; readonly arguments: unknown; readonly note?: string | undefined }
  | { readonly isRefused: true; readonly text: string };

export interface ToolGateGiven {
  readonly policy: TurnPolicy;
  /** Whether the engine of the turn can wait. */
  readonly canPause: boolean;
  /** Whether the app has the calls that decide approvals. */
  readonly hasApprovals: boolean;
  /** Whether the turn's user consented to this definition of a tool. */
  readonly hasConsent: (toolId: string, digest: string) => Promise<boolean>;
  readonly argumentsFault: ArgumentsFault;
  /** The decided approvals of the wait before. */
  readonly decided: readonly Approval[];
}

/** Decides which calls of a turn run, wait for a person, or are refused (open points 3 and 14). */
export class ToolGate {
  readonly #given: ToolGateGiven;
  /** In the order in which the turn made the calls. Each counts for one call: an engine may give several calls one ID. */
  readonly #decided: Approval[];

  constructor(given: ToolGateGiven) {
    this.#given = given;
    this.#decided = [...given.decided];
  }

  /** Whether the model is told of a tool. */
  offers(tool: ports.ToolDefinition): boolean {
    return permissionOf(tool, this.#given.policy).permission !== "deny";
  }

  /** Whether a person must decide about a call before the turn goes on. */
  async mustWait(tool: ports.ToolDefinition, call: GatedCall): Promise<boolean> {
    const { policy, canPause, hasApprovals, hasConsent, argumentsFault } = this.#given;
    const { permission, mayWait } = permissionOf(tool, policy);
    if (!canPause || !hasApprovals || !mayWait || permission !== "ask" || this.#approvalOf(call)) return false;
    // No person can approve a call that the tool would refuse.
    if ((await argumentsFault(tool.inputSchema, call.arguments)) !== undefined) return false;
    return !(await hasConsent(tool.id, toolDigest(tool)));
  }

  /** Call it once for each call that would run now. */
  async admit(tool: ports.ToolDefinition, call: GatedCall): Promise<Admitted> {
    const { policy, canPause, hasApprovals, hasConsent, argumentsFault } = this.#given;
    const { permission, mayWait } = permissionOf(tool, policy);
    if (permission === "deny") return refused("The policy does not permit this tool");
    const approval = this.#approvalOf(call);
    if (approval) {
      this.#decided.splice(this.#decided.indexOf(approval), 1);
      return admittedBy(approval, tool, call);
    }
    if (permission === "allow") return { isRefused: false, arguments: call.arguments };
    if (mayWait && !hasApprovals)
      return refused("This tool needs a person's confirmation, which no person can give in this service. It was not run");
    const counts = canPause && mayWait;
    if (counts && (await hasConsent(tool.id, toolDigest(tool)))) return { isRefused: false, arguments: call.arguments };
    // The model can mend these, and is asked for its call again.
    const fault = counts ? await argumentsFault(tool.inputSchema, call.arguments) : undefined;
    if (fault !== undefined) return refused(`The arguments do not fit the tool's schema: ${fault}`);
    return refused("This tool needs a person's confirmation and was not run");
  }

  /** How a person decided about a call that would run now. Undefined if no person was asked. */
  decisionOn(call: GatedCall): Decision | undefined {
    return this.#approvalOf(call)?.decided;
  }

  #approvalOf({ callId, toolId, arguments: args }: GatedCall): Approval | undefined {
    const ofCall = this.#decided.filter(({ toolCallId, tool }) => toolCallId === callId && tool.id === toolId);
    if (ofCall.length === 0) return undefined;
    const digest = digestOf(args);
    return ofCall.find(({ argumentsDigest }) => argumentsDigest === digest);
  }
}

function admittedBy({ tool: asked, decided: decision }: Approval, tool: ports.ToolDefinition, call: GatedCall): Admitted {
  const said = decision?.comment === undefined ? "" : `: ${decision.comment}`;
  if (decision?.decision === "reject") return refused(`A person rejected this call${said}`);
  if (decision?.decision !== "approve") return refused("No person decided about this call in time. It was not run");
  if (toolDigest(tool) !== asked.digest)
    return refused("The tool has changed since a person approved this call. It was not run. Call it again if you still need it");
  if (decision.arguments === undefined)
    return { isRefused: false, arguments: call.arguments, ...(said && { note: `A person approved this call${said}` }) };
  const note = `A person approved this call with other arguments: ${JSON.stringify(decision.arguments)}${said && ` (${decision.comment})`}`;
  return { isRefused: false, arguments: decision.arguments, note };
}

function refused(text: string): Admitted {
  return { isRefused: true, text };
}

/** The rules for the tools of one turn. */
export interface TurnPolicy {
  /** Those of the instance's configuration. */
  readonly instance: ports.ToolRules;
  /** Those of the agent's `agent.json`. */
  readonly agent: ports.ToolPolicy | undefined;
  readonly isBackground: boolean;
}

export interface Permitted {
  readonly permission: ports.ToolPermission;
  /** Whether an `ask` may make the turn wait. Otherwise it is refused. */
  readonly mayWait: boolean;
}

type Tool = Pick<ports.ToolDefinition, "id" | "riskLevel" | "requiresConfirmation">;

/** From the most permissive to the strictest. */
const ORDER: readonly ports.ToolPermission[] = ["allow", "ask", "deny"];

/**
 * Whether a tool may run in a turn. The agent's rules replace the default of the tool. The stricter one of the agent's and the instance's
 * rules counts, so that a file that an agent may write never permits more than the configuration.
 */
export function permissionOf(tool: Tool, { instance, agent, isBackground }: TurnPolicy): Permitted {
  const inBackground = isBackground ? ruleOf(tool, agent?.background) : undefined;
  const byAgent = inBackground ?? ruleOf(tool, agent);
  const byInstance = ruleOf(tool, instance);
  const own = byAgent ?? byInstance ?? (tool.requiresConfirmation ? "ask" : "allow");
  const permission = ORDER[Math.max(ORDER.indexOf(own), ORDER.indexOf(byInstance ?? "allow"))]!;
  return { permission, mayWait: !isBackground || inBackground === "ask" };
}

function ruleOf({ id, riskLevel }: Tool, rules: ports.ToolRules | undefined): ports.ToolPermission | undefined {
  const { tools = {}, riskLevels = {} } = rules ?? {};
  return Object.hasOwn(tools, id) ? tools[id] : riskLevels[riskLevel];
}
