import { createHash } from "node:crypto";
import { auditActor, type Handlers, hasAtMost, hasMoreLevels, ports, type RequestHead, ServiceError } from "@portico/core";
import type { LinkedGate } from "../access/run-tokens.ts";
import { askPage, type AskedDecision, COMMENT, controlName, DECISION, endPage, time, html } from "../approvals/approval-page.ts";
import type { approvalPagesContract } from "../contracts/approval-pages-contract.ts";
import { faultsByField, formFields, type FormField, readValues } from "../approvals/form-fields.ts";
import { COMMENT_LENGTH } from "../contracts/limits.ts";
import type { GateDecision } from "../runs/gates.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import { isTerminal } from "../contracts/run-state.ts";
import { type GivenDecision, takeDecision } from "./decide.ts";
import type { WorkflowServices } from "./workflow-services.ts";

type PageHandlers = Handlers<typeof approvalPagesContract>;

/** A gate that waits, and its link. */
interface Opened {
  readonly link: LinkedGate;
  readonly gate: Gate;
  readonly fields: readonly FormField[];
}

/**
 * The pages of approval links. GET shows the question and never decides, because mail programs open links. POST decides, once. Each answer is a
 * page for people, also those of links that are wrong, expired or used.
 */
export function approvalPages(services: WorkflowServices): PageHandlers {
  return {
    approvalPage: ({ params }) =>
      asPage(async () => {
        const opened = await openGate(services, params.token);
        return opened instanceof Response ? opened : ask(opened);
      }),
    approve: ({ params, body, head }) =>
      asPage(async () => {
        const opened = await openGate(services, params.token);
        if (opened instanceof Response) return opened;
        // Undefined for invalid UTF-8.
        return answer(services, opened, { sent: new URLSearchParams(body ?? ""), actor: actorOf(params.token, head) });
      }),
  };
}

/** Also for programs that send the form. */
const CHOOSE = `choose Approve or Reject (the field ${DECISION} is approve or reject)`;

/** The gate that a link opens, or the page that says why it does not. */
async function openGate({ runtime, clock }: WorkflowServices, token: string): Promise<Opened | Response> {
  const link = await runtime.approvalTokens.read(token);
  if (!link) return endPage(404, "This link is not valid", "Check that the whole address was copied.");
  if (link.expiresAt <= clock.now())
    return endPage(410, "This link has expired", "The person who sent it can decide in another way.");
  const { runId, nodeId } = link;
  const run = (await runtime.runs.find(runId))?.value;
  if (!run || isTerminal(run.status)) return endPage(410, "The workflow run has ended", "It no longer waits for a decision.");
  const decided = await runtime.gates.find(runId, nodeId);
  if (decided) return decidedPage(decided);
  const gate = run.gates?.find((each) => each.nodeId === nodeId);
  if (!gate) return endPage(410, "Nothing waits here", "The workflow run no longer waits for this decision.");
  return { link, gate, fields: gate.form ? formFields(gate.form) : [] };
}

async function answer(
  services: WorkflowServices,
  opened: Opened,
  { sent, actor }: { readonly sent: URLSearchParams; readonly actor: ports.AuditActor },
): Promise<Response> {
  const { link, gate, fields } = opened;
  const refuse = (problems: AskedDecision["problems"]) => ask(opened, { sent, problems });
  const decision = sent.get(DECISION);
  if (decision !== "approve" && decision !== "reject") return refuse(new Map([[undefined, CHOOSE]]));
  // A page sends the line breaks of a text as CR LF.
  const comment = (sent.get(COMMENT) ?? "").replaceAll("\r\n", "\n");
  if (!hasAtMost(COMMENT_LENGTH, comment))
    return refuse(new Map([[undefined, `a comment has at most ${COMMENT_LENGTH} characters`]]));
  // A rejection needs no values.
  const read = decision === "approve" ? readValues(fields, (name) => sent.get(controlName(name)) ?? "") : { values: {} };
  if ("faults" in read) return refuse(faultsByField(fields, read.faults));
  if (hasMoreLevels(read.values, ports.NODE_OUTPUT_LEVELS))
    return refuse(new Map([[undefined, "the values are nested too deeply"]]));
  const given: GivenDecision = { decision, values: read.values, ...(comment.trim() !== "" && { comment }) };
  const result = await takeDecision(services, { runId: link.runId, gate, actor }, given);
  if ("faults" in result) return refuse(faultsByField(fields, result.faults));
  if (result.taken.isEarlier) return decidedPage(result.taken);
  return endPage(200, decision === "approve" ? "Approved" : "Rejected", "Your decision was stored. You can close this page.");
}

function ask(
  { link, gate, fields }: Opened,
  { sent, problems = new Map() }: { readonly sent?: URLSearchParams; readonly problems?: AskedDecision["problems"] } = {},
): Response {
  const drafts = new Map(fields.map(({ name, draft }) => [controlName(name), draft]));
  const draftOf = (control: string) => (sent ? sent.get(control) : drafts.get(control)) ?? "";
  return askPage({ gate, fields, expiresAt: link.expiresAt, draftOf, problems });
}

function decidedPage({ decision, decidedAt }: GateDecision): Response {
  const says = html`It was ${decision === "approve" ? "approved" : "rejected"} ${time(decidedAt)}. The first decision counts.`;
  return endPage(410, "This was decided already", says);
}

/** The audit names the link by a part of its digest, which decides nothing. */
function actorOf(token: string, head: RequestHead): ports.AuditActor {
  const tokenId = `link_${createHash("sha256").update(token).digest("base64url").slice(0, 16)}`;
  return auditActor({ role: "link", tokenId }, head);
}

/** A store that is away is a page, too. */
async function asPage(make: () => Promise<Response>): Promise<Response> {
  try {
    return await make();
  } catch (error) {
    const isAway =
      error instanceof ports.RecordsUnavailable ||
      error instanceof ports.SealingUnavailable ||
      error instanceof ports.SigningUnavailable ||
      (ServiceError.is(error) && error.status === 503);
    if (!isAway) throw error;
    return endPage(
      503,
      "Try again later",
      "The service cannot reach its store. Nothing was decided, or the decision is stored already.",
    );
  }
}
