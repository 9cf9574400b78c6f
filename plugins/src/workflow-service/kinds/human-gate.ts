import { maxCharacters, orAborted, ports, retryWhileStoreAway } from "@portico/core";
import * as v from "valibot";
import { isRecord } from "@portico/core/contract";
import { jsonSchema } from "../definition/document-schema.ts";
import { duration } from "../definition/definition-limits.ts";
import { fromSensitivePaths } from "../secrecy/sensitive-paths.ts";
import { isWoundUp, type NodeKind } from "../runner/running.ts";
import { issueGateLink, notifyOfGate, gateLinks, linkEnd } from "./gate-notification.ts";
import { waitingRequest } from "./send-request.ts";
import { parseInput } from "../runner/node-values.ts";
import { type GateDecision, gateOutput, gateSignal } from "../runs/gates.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import { workName } from "../runs/run-id.ts";

const input = v.strictObject({
  title: v.pipe(
    v.string(),
    v.minLength(1, "A gate has a title"),
    maxCharacters(500, "A title has at most 500 characters"),
    v.description("The question to the person."),
  ),
  message: v.optional(
    v.pipe(
      v.string(),
      maxCharacters(65_536, "A message has at most 65,536 characters"),
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
  notify: v.optional(
    v.pipe(
      waitingRequest("gate"),
      v.description("A request that tells people that the gate waits: `url`, `method`, `headers`, `body`."),
    ),
  ),
  links: v.optional(
    v.pipe(
      gateLinks,
      v.description(
        "Whether the body of `notify` can name an approval link, `gate.link`: true, or an object with `expiresAfter`. Needs `workflow.publicUrl`.",
      ),
    ),
  ),
});

/** Waits for a person to approve or reject. The run's timeout is paused during that time. */
export const humanGateKind: NodeKind = {
  type: "human_gate",
  input,
  keys: { form: "verbatim", links: "verbatim" },
  // Sent after the gate was opened. Its body can contain the link, which history must not show.
  later: new Set(["notify"]),
  check({ notify, links }) {
    const hasNotify = notify !== undefined;
    if (links !== undefined && links !== false && !hasNotify)
      return [{ path: ["links"], message: "Links need `notify`: only the body of the notification can name the link" }];
    // The link would be known to an expression outside of the body.
    return hasNotify && !isRecord(notify) ? [{ path: ["notify"], message: "`notify` is an object, and no expression" }] : [];
  },
  cases: () => ["approve", "reject"],
  gate: { pass: "approve", stop: "reject" },
  // Repeatable, because after a crash it only continues to wait.
  repeatable: true,
  waits: true,
  async play(play) {
    const { running, node, nodeId, frame, inputs } = play;
    const { context, services, deadline, openGates, live, record } = running;
    const { gates, clock, telemetry } = services;
    const { title, message, form, timeout, onTimeout, links } = parseInput(input, inputs);
    const startedAt = await context.step(workName(nodeId, "requested"), async () => clock.now(), { repeatable: true });
    const expiresAt = timeout === undefined ? undefined : startedAt + timeout;
    const linkExpiresAt = linkEnd(links, { startedAt, expiresAt });
    // Before anything is shown that a person or a service may have copied the link into.
    const link = linkExpiresAt === undefined ? undefined : await issueGateLink(running, { nodeId, expiresAt: linkExpiresAt });
    const gate = running.secrecy.mask<Gate>({
      nodeId,
      title,
      message,
      ...(form && { form }),
      ...(node.sensitive && { sensitive: fromSensitivePaths(node.sensitive) }),
      requestedAt: new Date(startedAt).toISOString(),
      ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    });
    const addGate = () => live.ledger.add({ kind: "gate", ...gate });
    const find = () => retryWhileStoreAway(running.storeRetry, () => gates.find(record.runId, nodeId));
    const close = () => retryWhileStoreAway(running.storeRetry, () => openGates.close(nodeId));
    const isMetAgain = openGates.isOpen(nodeId);
    let decision = await find();
    // The decision was made before an earlier execution reported the gate.
    if (decision) addGate();
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
    const { decision: taken, decidedAt } = decision;
    return { output: gateOutput(decision), case: taken, attempts: 1, startedAt, endedAt: Date.parse(decidedAt) };

    async function decided(): Promise<GateDecision> {
      await retryWhileStoreAway(running.storeRetry, () => openGates.open(gate));
      if (!isMetAgain)
        telemetry.log.info("A workflow run waits for a person", { runId: record.runId, workflow: record.workflowId, nodeId });
      // The event is sent after the record is written: its readers may decide immediately, and a decision needs the record.
      addGate();
      if (node.with["notify"]?.kind !== "request") return answered(context);
      // A decision ends the attempts to notify people, because their notification is not needed any more.
      const over = new AbortController();
      const { requestedAt } = gate;
      const facts = { title: gate.title, message: gate.message, requestedAt, expiresAt: gate.expiresAt, ...link };
      const notifying = context
        .branch((own) => notifyOfGate({ ...play, running: { ...running, context: own } }, { facts, gate, over: over.signal }))
        // It ends early if the gate or its run ends.
        .catch(() => {});
      try {
        return await context.branch(answered);
      } finally {
        over.abort();
        await notifying;
      }
    }

    async function answered(own: ports.WorkContext): Promise<GateDecision> {
      const time = expiresAt === undefined ? {} : { timeoutMs: Math.max(0, expiresAt - clock.now()) };
      await orAborted(own.waitFor(gateSignal(nodeId), time), frame.signal);
      // The time has elapsed, but a person may have decided before that.
      return (await find()) ?? retryWhileStoreAway(running.storeRetry, () => gates.decide(record.runId, nodeId, late()));
    }

    function late(): GateDecision {
      const decidedAt = new Date(clock.now()).toISOString();
      return { decision: onTimeout, comment: "timeout", decidedAt, decidedBy: { role: "instance" } };
    }
  },
};
