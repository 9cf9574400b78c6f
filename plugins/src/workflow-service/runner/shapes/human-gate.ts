import { ports } from "@portico/core";
import { type GateDecision, gateSignal } from "../../runs/gates.ts";
import type { Gate } from "../../runs/ledger-entry.ts";
import { workName } from "../../runs/work-name.ts";
import { insist } from "../insist.ts";
import { orAborted } from "../or-aborted.ts";
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
  deadline.pause(startedAt);
  const find = () => insist(running, () => gates.find(record.runId, nodeId));
  const close = () => insist(running, () => board.close(nodeId));
  let decision: GateDecision | undefined;
  try {
    decision = await find();
    if (!decision) {
      await insist(running, () => board.open(gate));
      const isTold = (): Promise<unknown> =>
        context.waitFor(gateSignal(nodeId), expiresAt === undefined ? {} : { timeoutMs: Math.max(0, expiresAt - clock.now()) });
      await orAborted(isTold(), frame.signal);
      decision = await find();
      // The time was over; a person may have been quicker all the same.
      decision ??= await insist(running, () =>
        gates.decide(record.runId, nodeId, {
          decision: input.onTimeout ?? "reject",
          comment: "timeout",
          decidedAt: new Date(clock.now()).toISOString(),
        }),
      );
    }
  } catch (error) {
    const isOver = frame.signal.aborted || context.signal.reason instanceof ports.WorkCancelled;
    if (isOver) await close();
    throw error;
  } finally {
    deadline.resume(decision ? Date.parse(decision.decidedAt) : clock.now());
  }
  await close();
  const { decision: taken, values, comment, decidedAt } = decision;
  const output = { decision: taken, values: values ?? {}, comment: comment ?? null, decidedAt };
  return { output, case: taken, attempts: 1, startedAt, endedAt: Date.parse(decidedAt) };
}
