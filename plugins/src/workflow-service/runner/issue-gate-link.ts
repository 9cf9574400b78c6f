import { orAborted, ports } from "@portico/core";
import { approvalUrl } from "../approvals/approval-links.ts";
import type { Running } from "./running.ts";

/** The link of a gate, as expressions name it. */
export interface GateLink {
  readonly link: string;
  /** ISO 8601. */
  readonly linkExpiresAt: string;
}

/** Time until a key that is away is looked for again. */
const LOOK_AGAIN_MS = 1000;

/**
 * The approval link of a gate. From now on the run masks it in all that is shown and stored. Throws NodeFailed in an instance without a public
 * address: loading refuses such definitions, except those that runs began with before.
 */
export async function issueGateLink(
  { world, record, secrecy, context }: Running,
  { nodeId, expiresAt }: { readonly nodeId: string; readonly expiresAt: number },
): Promise<GateLink> {
  const { approvals, clock } = world;
  if (approvals.publicUrl === undefined)
    throw new ports.NodeFailed("links_unavailable", "Approval links need the setting workflow.publicUrl", { retryable: false });
  for (;;) {
    try {
      const token = await approvals.links.issue({ runId: record.runId, nodeId, expiresAt });
      // The token alone is enough to decide.
      secrecy.learn(token, [[]]);
      return { link: approvalUrl(approvals.publicUrl, token), linkExpiresAt: new Date(expiresAt).toISOString() };
    } catch (error) {
      if (!(error instanceof ports.SigningUnavailable)) throw error;
      const { promise, resolve } = Promise.withResolvers<void>();
      clock.after(LOOK_AGAIN_MS, resolve);
      await orAborted(promise, context.signal);
    }
  }
}
