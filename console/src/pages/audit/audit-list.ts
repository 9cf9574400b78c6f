import type { CallResult } from "@portico/core/client";
import type { auditContract } from "@portico/operator/audit/contract";
import { type RunColumn, type RunFilter, timeFilters } from "../../blocks/runs/run-list.ts";
import { routeTo } from "../../shell/route.svelte.ts";

export type AuditEntry = CallResult<typeof auditContract.entries>["items"][number];

/** The filters in the address: `#/audit?action=safe-token.issue&userId=ada`. */
export const AUDIT_FILTERS: readonly RunFilter[] = [
  { name: "action", title: "Action", placeholder: "safe-token.issue", maxlength: 64 },
  { name: "userId", title: "User", maxlength: 512 },
  { name: "object", title: "Object", placeholder: "A part of its ID", maxlength: 512 },
  { name: "address", title: "From", placeholder: "192.0.2.", maxlength: 64 },
  ...timeFilters("since", "until").map((filter) => (filter.name === "since" ? { ...filter, title: "Time" } : filter)),
];

const OUTCOMES = {
  done: { text: "Done", tone: "good" },
  begun: { text: "Begun", tone: "active" },
  failed: { text: "Failed", tone: "bad" },
} as const;

const ROLES: Readonly<Record<string, string>> = {
  owner: "Owner",
  member: "Member",
  service: "Service",
  workflow: "Workflow service",
  grant: "Execution grant",
  link: "Link",
  agent: "Agent",
  command: "Command line",
  instance: "The service itself",
  unknown: "Without a valid credential",
};

export const AUDIT_COLUMNS: readonly RunColumn<AuditEntry>[] = [
  { id: "action", title: "Action", isShown: "always", cell: ({ action: text }) => ({ as: "text", text }) },
  {
    ...{ id: "object", title: "Object", isShown: "unless" },
    cell(entry) {
      const { object, count } = entry;
      const text = object ?? (count === undefined ? undefined : `${count}`);
      if (text === undefined || text === "") return undefined;
      const href = placeOf(entry);
      return {
        as: "text",
        text: object !== undefined && count !== undefined ? `${object} (${count})` : text,
        ...(href && { href }),
      };
    },
  },
  {
    ...{ id: "outcome", title: "Outcome", isShown: "unless" },
    cell: ({ outcome, error }) => ({ as: "status", ...OUTCOMES[outcome], why: error }),
  },
  {
    ...{ id: "who", title: "Who", isShown: "unless" },
    cell({ who: { role, userId } }) {
      const name = ROLES[role] ?? role;
      if (userId === undefined) return { as: "text", text: name };
      return {
        as: "text",
        text: `${userId} (${name.toLowerCase()})`,
        href: entriesWith({ userId }),
      };
    },
  },
  { id: "credential", title: "Credential", isShown: "if", cell: ({ who }) => textOf(who.tokenId) },
  {
    id: "address",
    title: "From",
    isShown: "unless",
    cell: ({ who: { address } }) =>
      address === undefined ? undefined : { as: "text", text: address, href: entriesWith({ address }) },
  },
  { id: "at", title: "When", align: "end", isShown: "unless", cell: ({ at }) => ({ as: "time", at }) },
];

/** The page with the entries that match. */
function entriesWith(filters: Readonly<Record<string, string>>): string {
  return `${routeTo("audit")}?${new URLSearchParams(filters)}`;
}

function textOf(text: string | undefined) {
  return text === undefined ? undefined : ({ as: "text", text } as const);
}

/** The page of an object. Undefined for objects without a page. */
function placeOf({ action, object = "" }: AuditEntry): string | undefined {
  const [kind = ""] = action.split(".");
  const [first = ""] = object.split("/");
  switch (kind) {
    case "safe-token":
    case "provider-credential":
      return routeTo("providers");
    case "workflow-definition":
      return routeTo("workflows", object);
    case "workflow-schedule":
      return routeTo("workflows", first);
    case "agent-document":
      return routeTo("agents", object);
    case "agent-memory":
      return routeTo("agents", first);
    case "webhook":
    case "webhook-event":
    case "webhook-secret":
    case "webhook-sender":
      return routeTo("webhooks", first);
    case "schedule":
      return routeTo("schedules");
    case "run":
      return routeTo("runs", object);
    case "approval":
      return first.startsWith("run_") ? routeTo("runs", first) : undefined;
    case "tool-consent":
      return routeTo("approvals");
    case "mcp-server":
      return routeTo("accounts");
    default:
      return undefined;
  }
}
