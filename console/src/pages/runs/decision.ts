/** How a person decided about a call of a tool, as the pages show it. */
export interface ShownDecision {
  readonly status: string;
  readonly decidedBy?: string | undefined;
  /** ISO 8601. */
  readonly decidedAt?: string | undefined;
  readonly comment?: string | undefined;
}

/** The same in a receipt. */
export interface ReceiptDecision {
  readonly status: string;
  readonly user_id?: string;
  readonly at?: string;
  readonly comment?: string;
}

export function readDecision({ status, user_id, at, comment }: ReceiptDecision): ShownDecision {
  return { status, decidedBy: user_id, decidedAt: at, comment };
}

/** Words for the status of a decision. */
export function decisionWords(status: string): string {
  return WORDS[status] ?? status;
}

const WORDS: Readonly<Record<string, string>> = {
  approved: "Approved",
  rejected: "Rejected",
  expired: "No decision in time",
  withdrawn: "Stopped before a decision",
};
