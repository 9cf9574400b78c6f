import { orAborted, ports, retryWhileStoreAway } from "@portico/core";
import { record } from "@portico/core/contract";
import * as v from "valibot";
import { NOTIFICATION_RETRY } from "../contracts/limits.ts";
import { ExpressionFailed } from "../expressions/expression.ts";
import type { Gate, GateNotification } from "../runs/ledger-entry.ts";
import { workName } from "../runs/run-id.ts";
import { assertSize, filledIn, parseInput } from "../runner/node-values.ts";
import { type Attempt, isNodeFailed } from "../runner/attempt.ts";
import type { NodePlay, Running } from "../runner/running.ts";
import { approvalUrl } from "../approvals/approval-links.ts";
import { duration } from "../definition/definition-limits.ts";

const scalar = v.union([v.string(), v.number(), v.boolean()]);

/** `notify` of a gate, with its templates filled in. */
export const gateNotification = v.strictObject({
  url: v.pipe(v.string(), v.description("An http or https URL, as `http` nodes take it.")),
  method: v.optional(v.pipe(v.picklist(["POST", "PUT"]), v.description("Default `POST`.")), "POST"),
  headers: v.optional(v.pipe(record(v.string(), scalar), v.description("Headers by name, as `http` nodes take them."))),
  body: v.optional(
    v.pipe(
      v.unknown(),
      v.description("A text is sent unchanged, anything else as JSON. Its expressions can name `gate`. Default: all of `gate`."),
    ),
  ),
});

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

/** Time until a key that is away is looked for again. */
const LOOK_AGAIN_MS = 1000;

/**
 * The approval link of a gate. From now on the run masks it in all that is shown and stored. Throws NodeFailed in an instance without a public
 * address: loading refuses such definitions, except those that runs began with before.
 */
export async function issueGateLink(
  { services, record, secrecy, context }: Running,
  { nodeId, expiresAt }: { readonly nodeId: string; readonly expiresAt: number },
): Promise<GateLink> {
  const { approvals, clock } = services;
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

interface Notified {
  /** What expressions of the body can name as `gate`. */
  readonly facts: Pick<Gate, "title" | "message" | "requestedAt" | "expiresAt"> & Partial<GateLink>;
  readonly gate: Gate;
  /** Aborts when the gate no longer waits. */
  readonly over: AbortSignal;
}

/**
 * Sends the notification of a gate, and shows its end in the record, the events and the log. Each attempt is a step of the engine, and all
 * attempts have one idempotency key: a receiver that knows such keys acts once. A failure does not end the gate. Rejects if the gate or the
 * execution ends before.
 */
export async function notifyOfGate(play: NodePlay, { facts, gate, over }: Notified): Promise<void> {
  const { running, nodeId, frame } = play;
  const { context, services, record, openGates, live, storeRetry } = running;
  const ended = AbortSignal.any([over, frame.signal]);
  const notification = await delivered(play, facts, ended);
  // As a step, so that an execution that comes here again does not log it again.
  await context.step(
    workName(nodeId, "notified"),
    async () => {
      if (notification.status === "sent") return;
      const { code } = notification.error!;
      services.telemetry.log.warn("The notification of a gate could not be delivered", { runId: record.runId, nodeId, code });
    },
    { repeatable: true },
  );
  live.ledger.add({ kind: "notified", nodeId, ...notification });
  if (!ended.aborted) await retryWhileStoreAway(storeRetry, () => openGates.change({ ...gate, notification }));
}

async function delivered(play: NodePlay, facts: Notified["facts"], ended: AbortSignal): Promise<GateNotification> {
  const { running, nodeId } = play;
  const { attempts, factor, maxDelayMs } = NOTIFICATION_RETRY;
  let delay: number = NOTIFICATION_RETRY.delayMs;
  for (let attempt = 1; ; attempt++) {
    const result = await running.context.step<Attempt>(
      workName(nodeId, `notify #${attempt}`),
      (signal) => sentOnce(play, { facts, attempt, signal: AbortSignal.any([signal, ended]) }),
      { repeatable: true },
    );
    if (result.isOk) return { status: "sent" };
    const { code, message, isFinal, retryAfterMs = 0 } = result;
    if (isFinal || attempt >= attempts) return { status: "failed", error: { code, message } };
    const pause = Math.min(Math.max(delay, retryAfterMs), maxDelayMs);
    await orAborted(running.context.sleep(workName(nodeId, `notify #${attempt} pause`), pause), ended);
    delay *= factor;
  }
}

/** The result never contains the answer, which could repeat the link. Rejects if the signal aborts. */
async function sentOnce(
  play: NodePlay,
  { facts, attempt, signal }: Pick<Notified, "facts"> & { readonly attempt: number; readonly signal: AbortSignal },
): Promise<Attempt> {
  const { running, nodeId } = play;
  const { services, record, secrecy } = running;
  const { runId, workflowId, userId, depth: workflowDepth = 0 } = record;
  try {
    const http = services.nodes.get("http");
    if (!http) throw new ports.NodeFailed("notification_unavailable", "This instance has no `http` nodes", { retryable: false });
    const request = await filledRequest(play, facts);
    const input = parseInput(http.input, { ...request, key: "node" });
    // Not the key of a run that this run resumes: the gate has another link now.
    const step = { runId, workflowId, nodeId, attempt, userId, workflowDepth };
    await orAborted(http.run({ input, step, signal, isSecret: secrecy.isIn }), signal);
    return { isOk: true, output: null };
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    if (isNodeFailed(thrown)) {
      const { code, message, retryable, retryAfterMs } = thrown;
      return { isOk: false, code, message: secrecy.mask(message), isFinal: !retryable, retryAfterMs };
    }
    if (thrown instanceof ExpressionFailed)
      return { isOk: false, code: "expression_failed", message: secrecy.mask(thrown.message), isFinal: true };
    services.telemetry.log.error("The notification of a gate failed unexpectedly", { runId, nodeId }, thrown);
    const message = "The notification failed unexpectedly; the service's log says why";
    return { isOk: false, code: "notification_failed", message, isFinal: false };
  }
}

/** The request with its templates filledRequest in. Throws NodeFailed and ExpressionFailed. */
async function filledRequest({ running, node, nodeId, frame }: NodePlay, facts: Notified["facts"]) {
  const notify = node.with["notify"];
  if (notify?.kind !== "notification") throw new TypeError(`Node ${nodeId} has no notification`);
  const { record } = running;
  const gate = { workflowId: record.workflowId, runId: record.runId, nodeId, ...facts };
  const request = await filledIn(running, frame, notify.request);
  const body = notify.body && (await filledIn(running, { ...frame, gate }, notify.body));
  const parsed = parseInput(gateNotification, { ...(request as object), body: body ?? gate });
  assertSize(parsed.body);
  return parsed;
}
