import { orAborted, ports } from "@portico/core";
import { record } from "@portico/core/contract";
import * as v from "valibot";
import { NOTIFICATION_RETRY } from "../contracts/limits.ts";
import { ExpressionFailed } from "../expressions/expression.ts";
import type { DeliveryError } from "../runs/ledger-entry.ts";
import { workName } from "../runs/run-id.ts";
import { assertSize, filledIn, parseInput } from "../runner/node-values.ts";
import { type Attempt, isNodeFailed } from "../runner/attempt.ts";
import type { Frame, NodePlay, Running } from "../runner/running.ts";

const scalar = v.union([v.string(), v.number(), v.boolean()]);

/** A request that a waiting node sends, with its templates filled in. `root`: what the expressions of the body can name. */
export const waitingRequest = (root: string) =>
  v.strictObject({
    url: v.pipe(v.string(), v.description("An http or https URL, as `http` nodes take it.")),
    method: v.optional(v.pipe(v.picklist(["POST", "PUT"]), v.description("Default `POST`.")), "POST"),
    headers: v.optional(v.pipe(record(v.string(), scalar), v.description("Headers by name, as `http` nodes take them."))),
    body: v.optional(
      v.pipe(
        v.unknown(),
        v.description(
          `A text is sent unchanged, anything else as JSON. Its expressions can name \`${root}\`. Default: all of \`${root}\`.`,
        ),
      ),
    ),
  });

/** What is sent, and what it is called. */
export interface WaitingRequest {
  /** The key of `with`. */
  readonly key: "notify" | "request";
  /** The name of the facts in expressions of the body. */
  readonly root: "gate" | "callback";
  readonly facts: object;
  /** The beginning of the names of the engine's steps. */
  readonly step: string;
  /** The idempotency key is for this attempt of the node. Undefined: for all of them. */
  readonly attempt?: number | undefined;
  /** Aborts when the answer is no longer needed. */
  readonly ended: AbortSignal;
}

/** The end of a request: undefined, or why it could not be delivered. */
export type Delivery = { readonly error?: (DeliveryError & { readonly isFinal: boolean }) | undefined };

/** Time until a key that is away is looked for again. */
const LOOK_AGAIN_MS = 1000;

/**
 * Issues a token for a person or a service. From now on the run masks it in all that is shown and stored. Waits while the instance's key is
 * unavailable.
 */
export async function issueInRun({ services, secrecy, context }: Running, issue: () => Promise<string>): Promise<string> {
  for (;;) {
    try {
      const token = await issue();
      // The token alone is enough to answer.
      secrecy.learn(token, [[]]);
      return token;
    } catch (error) {
      if (!(error instanceof ports.SigningUnavailable)) throw error;
      const { promise, resolve } = Promise.withResolvers<void>();
      services.clock.after(LOOK_AGAIN_MS, resolve);
      await orAborted(promise, context.signal);
    }
  }
}

/**
 * Sends a request until it is delivered, another attempt cannot mend the failure, or the attempts are used up. Each attempt is a step of the
 * engine, and all attempts have one idempotency key: a receiver that knows such keys acts once. Rejects if the execution or the signal ends
 * before.
 */
export async function sendRequest(play: NodePlay, request: WaitingRequest): Promise<Delivery> {
  const { running, nodeId } = play;
  const { step, ended } = request;
  const { attempts, factor, maxDelayMs } = NOTIFICATION_RETRY;
  let delay: number = NOTIFICATION_RETRY.delayMs;
  for (let attempt = 1; ; attempt++) {
    const result = await running.context.step<Attempt>(
      workName(nodeId, `${step} #${attempt}`),
      (signal) => sentOnce(play, request, { attempt, signal: AbortSignal.any([signal, ended]) }),
      { repeatable: true },
    );
    if (result.isOk) return {};
    const { code, message, isFinal, retryAfterMs = 0 } = result;
    if (isFinal || attempt >= attempts) return { error: { code, message, isFinal } };
    const pause = Math.min(Math.max(delay, retryAfterMs), maxDelayMs);
    await orAborted(running.context.sleep(workName(nodeId, `${step} #${attempt} pause`), pause), ended);
    delay *= factor;
  }
}

/** The result never contains the answer, which could repeat the token. Rejects if the signal aborts. */
async function sentOnce(
  play: NodePlay,
  request: WaitingRequest,
  { attempt, signal }: { readonly attempt: number; readonly signal: AbortSignal },
): Promise<Attempt> {
  const { running, nodeId } = play;
  const { services, record, secrecy } = running;
  const { runId, workflowId, userId, depth: workflowDepth = 0 } = record;
  try {
    const http = services.nodes.get("http");
    if (!http) throw new ports.NodeFailed("notification_unavailable", "This instance has no `http` nodes", { retryable: false });
    const filled = await filledRequest(play, request);
    const input = parseInput(http.input, { ...filled, key: request.attempt === undefined ? "node" : true });
    // Not the key of a run that this run resumes: the node has another token now.
    const step = { runId, workflowId, nodeId, attempt: request.attempt ?? attempt, userId, workflowDepth };
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
    services.telemetry.log.error("The request of a waiting node failed unexpectedly", { runId, nodeId }, thrown);
    const message = "The request failed unexpectedly; the service's log says why";
    return { isOk: false, code: "notification_failed", message, isFinal: false };
  }
}

/** The request with its templates filled in. Throws NodeFailed and ExpressionFailed. */
async function filledRequest(
  { running, node, nodeId, frame }: NodePlay,
  { key, root, facts }: Pick<WaitingRequest, "key" | "root" | "facts">,
) {
  const written = node.with[key];
  if (written?.kind !== "request") throw new TypeError(`Node ${nodeId} has no request`);
  const { record } = running;
  const named = { workflowId: record.workflowId, runId: record.runId, nodeId, ...facts };
  const request = await filledIn(running, frame, written.request);
  const inBody: Frame = { ...frame, [root]: named };
  const body = written.body && (await filledIn(running, inBody, written.body));
  const parsed = parseInput(waitingRequest(root), { ...(request as object), body: body ?? named });
  assertSize(parsed.body);
  return parsed;
}
