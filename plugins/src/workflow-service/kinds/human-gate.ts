import { orAborted, ports, retryWhileStoreAway } from "@portico/core";
import * as v from "valibot";
import { jsonSchema } from "../definition/document-schema.ts";
import { duration } from "../definition/duration.ts";
import { fromSensitivePaths } from "../definition/sensitive-paths.ts";
import { isWoundUp } from "../runner/is-wound-up.ts";
import { parseInput } from "../runner/parse-input.ts";
import type { NodeKind } from "../runner/running.ts";
import { type GateDecision, gateSignal } from "../runs/gates.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import { workName } from "../runs/work-name.ts";

const input = v.strictObject({
  title: v.pipe(
    v.string(),
    v.minLength(1, "A gate has a title"),
    v.maxLength(500, "A title has at most 500 characters"),
    v.description("The question to the person."),
  ),
  message: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(65_536, "A message has at most 65,536 characters"),
      v.description("Information for the decision."),
    ),
    "",
  ),
  form: v.optional(v.pipe(jsonSchema, v.description("JSON Schema of the decision's `values`."))),
  timeout: v.optional(duration("Timeout of the gate: a duration; default: no timeout.")),
  onTimeout: v.optional(
    v.pipe(v.picklist(["approve", "reject"]), v.description("The decision after the timeout; default `reject`.")),
    "reject",
  ),
});

/** Waits for a person to approve or reject. The run's timeout is paused during that time. */
export const humanGateKind: NodeKind = {
  type: "human_gate",
  input,
  keys: { form: "verbatim" },
  cases: () => ["approve", "reject"],
  gate: { pass: "approve", stop: "reject" },
  // Repeatable, because after a crash it only continues to wait.
  repeatable: true,
  waits: true,
  async play({ running, node, nodeId, frame, inputs }) {
    const { context, world, deadline, board, live, record } = running;
    const { gates, clock } = world;
    const { title, message, form, timeout, onTimeout } = parseInput(input, inputs);
    const startedAt = await context.step(workName(nodeId, "requested"), async () => clock.now(), { repeatable: true });
    const expiresAt = timeout === undefined ? undefined : startedAt + timeout;
    const gate = running.secrecy.mask<Gate>({
      nodeId,
      title,
      message,
      ...(form && { form }),
      ...(node.sensitive && { sensitive: fromSensitivePaths(node.sensitive) }),
      requestedAt: new Date(startedAt).toISOString(),
      ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    });
    const tell = () => live.ledger.add({ kind: "gate", ...gate });
    const find = () => retryWhileStoreAway(running.storeRetry, () => gates.find(record.runId, nodeId));
    const close = () => retryWhileStoreAway(running.storeRetry, () => board.close(nodeId));
    const isMetAgain = board.isOpen(nodeId);
    let decision = await find();
    // The decision was made before an earlier execution reported the gate.
    if (decision) tell();
    // A gate that an earlier execution closed is already counted as a pause, and so is a gate that it left open.
    if (isMetAgain || !decision) {
      if (!isMetAgain) deadline.pause(startedAt);
      try {
        decision ??= await decided();
      } catch (error) {
        const isOver = isWoundUp(running, frame) || context.signal.reason instanceof ports.WorkCancelled;
        // Otherwise a later execution continues to wait.
        if (isOver) {
          deadline.resume(clock.now());
          await close();
        }
        throw error;
      }
      deadline.resume(Date.parse(decision.decidedAt));
    }
    await close();
    const { decision: taken, values, comment, decidedAt } = decision;
    const output = { decision: taken, values: values ?? {}, comment: comment ?? null, decidedAt };
    return { output, case: taken, attempts: 1, startedAt, endedAt: Date.parse(decidedAt) };

    async function decided(): Promise<GateDecision> {
      await retryWhileStoreAway(running.storeRetry, () => board.open(gate));
      // The event is sent after the record is written: its readers may decide immediately, and a decision needs the record.
      tell();
      const time = expiresAt === undefined ? {} : { timeoutMs: Math.max(0, expiresAt - clock.now()) };
      await orAborted(context.waitFor(gateSignal(nodeId), time), frame.signal);
      // The time has elapsed, but a person may have decided before that.
      return (await find()) ?? retryWhileStoreAway(running.storeRetry, () => gates.decide(record.runId, nodeId, late()));
    }

    function late(): GateDecision {
      return { decision: onTimeout, comment: "timeout", decidedAt: new Date(clock.now()).toISOString() };
    }
  },
};
