import { orAborted, ports, retryWhileStoreAway, withoutEnd } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import * as v from "valibot";
import { duration } from "../definition/definition-limits.ts";
import { jsonSchema } from "../definition/document-schema.ts";
import type { Attempt } from "../runner/attempt.ts";
import { withRetries } from "../runner/node-attempts.ts";
import { parseInput } from "../runner/node-values.ts";
import { isWoundUp, type NodeKind, type NodePlay } from "../runner/running.ts";
import { CALLBACK_CANCELLED, type CallbackClosed, type CallbackEnd, callbackSignal, isEvent } from "../runs/callbacks.ts";
import { workName } from "../runs/run-id.ts";
import { issueInRun, sendRequest, waitingRequest } from "./send-request.ts";

const input = v.strictObject({
  timeout: v.optional(duration("How long the address takes the event: a duration; default `1h`."), "1h"),
  schema: v.optional(v.pipe(jsonSchema, v.description("JSON Schema of the event. Defaults are applied."))),
  request: v.pipe(
    waitingRequest("callback"),
    v.description("A request that gives a service the address `callback.url`: `url`, `method`, `headers`, `body`."),
  ),
});
/** `request` is filled in when it is sent. */
const ownInput = v.omit(input, ["request"]);

/** Gives a service an address that takes one event, and waits for that event. */
export const callbackKind: NodeKind = {
  type: "callback",
  input,
  keys: { schema: "verbatim" },
  // Its body contains the address, which history must not show.
  later: new Set(["request"]),
  // The address would be known to an expression outside of the body.
  check: ({ request }) =>
    request === undefined || isRecord(request)
      ? []
      : [{ path: ["request"], message: "`request` is an object, and no expression" }],
  // Repeatable, because after a crash it only continues to wait.
  repeatable: true,
  waits: true,
  play: (play) => withRetries(play, (attempt) => awaited(play, attempt)),
};

/** One attempt: a new address, the request that contains it, and the wait. */
async function awaited(play: NodePlay, attempt: number): Promise<Attempt> {
  const { running, nodeId, frame, inputs } = play;
  const { context, services, live, record, openGates } = running;
  const { addresses, callbacks, clock } = services;
  const { timeout } = parseInput(ownInput, inputs);
  const { runId } = record;
  const { publicUrl } = addresses;
  if (publicUrl === undefined)
    throw new ports.NodeFailed("callbacks_unavailable", "Callbacks need the setting workflow.publicUrl", { retryable: false });
  const signal = callbackSignal(nodeId, attempt);
  const startedAt = await context.step(workName(nodeId, `awaits #${attempt}`), async () => clock.now(), { repeatable: true });
  const expiresAt = startedAt + timeout;
  // Before anything is shown or stored that a service may have copied the token into.
  const token = await issueInRun(running, () => addresses.callbacks.issue({ runId, nodeId, attempt, expiresAt }));
  openGates.expects(signal);
  const times = { requestedAt: new Date(startedAt).toISOString(), expiresAt: new Date(expiresAt).toISOString() };
  live.ledger.add({ kind: "callback", nodeId, attempt, ...times });
  const find = () => retryWhileStoreAway(running.storeRetry, () => callbacks.find(runId, signal));
  const end = (await find()) ?? (await waited());
  if (isEvent(end)) return { isOk: true, output: end.body, startedAt, endedAt: Date.parse(end.at) };
  // An earlier execution closed it when the node was cancelled. This execution reaches the reason of that, too.
  if (end.error.code === CALLBACK_CANCELLED) await orAborted(new Promise<never>(() => {}), frame.signal);
  return { isOk: false, ...end.error };

  async function waited(): Promise<CallbackEnd> {
    const over = new AbortController();
    const undelivered = new AbortController();
    const facts = { url: `${withoutEnd(publicUrl!, "/")}/callback/${token}`, ...times };
    const request = { key: "request", root: "callback", facts, attempt, step: `send ${attempt}` } as const;
    const sending = context
      .branch((own) =>
        sendRequest(
          { ...play, running: { ...running, context: own } },
          { ...request, ended: AbortSignal.any([over.signal, frame.signal]) },
        ),
      )
      .then(({ error }) => {
        if (error) undelivered.abort(error);
      })
      // It ends early if the event comes, or the node or its run ends.
      .catch(() => {});
    try {
      return await context.branch((own) => received(own, AbortSignal.any([frame.signal, undelivered.signal])));
    } catch (error) {
      if (isWoundUp(running, frame)) await close({ code: CALLBACK_CANCELLED, message: "The node was cancelled", isFinal: true });
      if (frame.signal.aborted || context.signal.aborted || !undelivered.signal.aborted) throw error;
      return await close(undelivered.signal.reason as CallbackClosed["error"]);
    } finally {
      over.abort();
      await sending;
    }
  }

  async function received(own: ports.WorkContext, ended: AbortSignal): Promise<CallbackEnd> {
    for (;;) {
      // No longer than the run's remaining time, because the run must react to its timeout. A parallel gate may prolong that time.
      const left = play.left();
      // The deadline reports the timeout of the run.
      if (left <= 0) await orAborted(new Promise<never>(() => {}), ended);
      const timeoutMs = Math.min(Math.max(0, expiresAt - clock.now()), left);
      await orAborted(own.waitFor(signal, { timeoutMs }), ended);
      const found = await find();
      if (found) return found;
      if (clock.now() >= expiresAt) return close({ code: "callback_timeout", message: "No event came in time", isFinal: false });
    }
  }

  function close(error: CallbackClosed["error"]): Promise<CallbackEnd> {
    const closed = { error, at: new Date(clock.now()).toISOString() };
    return retryWhileStoreAway(running.storeRetry, () => callbacks.close(runId, signal, closed));
  }
}
