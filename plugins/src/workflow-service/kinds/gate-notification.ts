import { ports, retryWhileStoreAway, withoutEnd } from "@portico/core";
import * as v from "valibot";
import { duration } from "../definition/definition-limits.ts";
import type { Gate, GateNotification } from "../runs/ledger-entry.ts";
import { workName } from "../runs/run-id.ts";
import type { NodePlay, Running } from "../runner/running.ts";
import { issueInRun, sendRequest } from "./send-request.ts";

/** `links` of a gate: whether it has an approval link, and how long the link is valid. */
export const gateLinks = v.union([
  v.boolean(),
  v.strictObject({ expiresAfter: v.optional(duration("How long the link is valid: a duration; default `7d`.")) }),
]);

/** How long links are valid by default. A link never outlives the timeout of its gate. */
const LINK_MS = 7 * 24 * 60 * 60_000;

/** The end of the link of a gate, in milliseconds since 1970; undefined for a gate without links. */
export function linkEnd(
  links: v.InferOutput<typeof gateLinks> | undefined,
  { startedAt, expiresAt = Infinity }: { readonly startedAt: number; readonly expiresAt?: number | undefined },
): number | undefined {
  if (links === undefined || links === false) return undefined;
  const { expiresAfter = LINK_MS } = links === true ? {} : links;
  return Math.min(startedAt + expiresAfter, expiresAt);
}

/** The link of a gate, as expressions name it. */
interface GateLink {
  readonly link: string;
  /** ISO 8601. */
  readonly linkExpiresAt: string;
}

/**
 * The approval link of a gate. Throws NodeFailed in an instance without a public address: loading refuses such definitions, except those that
 * runs began with before.
 */
export async function issueGateLink(
  running: Running,
  { nodeId, expiresAt }: { readonly nodeId: string; readonly expiresAt: number },
): Promise<GateLink> {
  const { publicUrl, approvals } = running.services.addresses;
  if (publicUrl === undefined)
    throw new ports.NodeFailed("links_unavailable", "Approval links need the setting workflow.publicUrl", { retryable: false });
  const { runId } = running.record;
  const token = await issueInRun(running, () => approvals.issue({ runId, nodeId, expiresAt }));
  return { link: `${withoutEnd(publicUrl, "/")}/approve/${token}`, linkExpiresAt: new Date(expiresAt).toISOString() };
}

interface Notified {
  /** What expressions of the body can name as `gate`. */
  readonly facts: Pick<Gate, "title" | "message" | "requestedAt" | "expiresAt"> & Partial<GateLink>;
  readonly gate: Gate;
  /** Aborts when the gate no longer waits. */
  readonly over: AbortSignal;
}

/**
 * Sends the notification of a gate, and shows its end in the record, the events and the log. A failure does not end the gate. Rejects if the
 * gate or the execution ends before.
 */
export async function notifyOfGate(play: NodePlay, { facts, gate, over }: Notified): Promise<void> {
  const { running, nodeId, frame } = play;
  const { context, services, record, openGates, live, storeRetry } = running;
  const ended = AbortSignal.any([over, frame.signal]);
  const { error } = await sendRequest(play, { key: "notify", root: "gate", facts, step: "notify", ended });
  const notification: GateNotification = error
    ? { status: "failed", error: { code: error.code, message: error.message } }
    : { status: "sent" };
  // As a step, so that an execution that comes here again does not log it again.
  await context.step(
    workName(nodeId, "notified"),
    async () => {
      if (!error) return;
      const { code } = error;
      services.telemetry.log.warn("The notification of a gate could not be delivered", { runId: record.runId, nodeId, code });
    },
    { repeatable: true },
  );
  live.ledger.add({ kind: "notified", nodeId, ...notification });
  if (!ended.aborted) await retryWhileStoreAway(storeRetry, () => openGates.change({ ...gate, notification }));
}
