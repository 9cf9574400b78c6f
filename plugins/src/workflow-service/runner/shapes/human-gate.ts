import { orAborted, ports } from "@portico/core";
import { type GateDecision, gateSignal } from "../../runs/gates.ts";
import type { Gate } from "../../runs/ledger-entry.ts";
import { workName } from "../../runs/work-name.ts";
import { insist } from "../insist.ts";
import { type NodePlay, parseInput } from "../play-attempts.ts";
import type { NodeResult } from "../play-node.ts";

interface GateInput {
  readonly title: string;
  readonly message?: string | undefined;
  readonly form?: Readonly<Record<string, unknown>> | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
  readonly onTimeout?: "approve" | "reject" | undefined;
}

/** Waits for a person to approve or reject; the run's own time stands still meanwhile. */
export async function playGate({ running, node, nodeId, frame, inputs }: NodePlay): Promise<NodeResult> {
  const { context, world, deadline, board, live, record } = running;
  const { gates, clock } = world;
  const input = parseInput(node.rules, inputs) as GateInput;
  const startedAt = await context.step(workName(nodeId, "requested"), async () => clock.now(), { repeatable: true });
  const expiresAt = input.timeout === undefined ? undefined : startedAt + input.timeout;
  const gate = running.mask<Gate>({
    nodeId,
    title: input.title,
    message: input.message ?? "",
    ...(input.form && { form: input.form }),
    requestedAt: new Date(startedAt).toISOString(),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
  });
  live.ledger.add({ kind: "gate", ...gate });
  const find = () => insist(running, () => gates.find(record.runId, nodeId));
  const close = () => insist(running, () => board.close(nodeId));
  const isMetAgain = board.isOpen(nodeId);
  let decision = await find();
  // A gate that an earlier execution closed has been counted, and one that it left open is.
  if (isMetAgain || !decision) {
    if (!isMetAgain) deadline.pause(startedAt);
    try {
      decision ??= await decided();
    } catch (error) {
      const isOver = frame.signal.aborted || context.signal.reason instanceof ports.WorkCancelled;
      // Otherwise a later execution goes on waiting.
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
    await insist(running, () => board.open(gate));
    const time = expiresAt === undefined ? {} : { timeoutMs: Math.max(0, expiresAt - clock.now()) };
    await orAborted(context.waitFor(gateSignal(nodeId), time), frame.signal);
    // The time was over; a person may have been quicker all the same.
    return (await find()) ?? insist(running, () => gates.decide(record.runId, nodeId, late()));
  }

  function late(): GateDecision {
    return { decision: input.onTimeout ?? "reject", comment: "timeout", decidedAt: new Date(clock.now()).toISOString() };
  }
}
