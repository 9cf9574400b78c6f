import { addModelUsage, orAborted, ports, retryWhileStoreAway, withHandledRejections, hasMoreLevels } from "@portico/core";
import { endsItsRun, outermost } from "../definition/definition.ts";
import { workName } from "../runs/run-id.ts";
import { assertSize, openOutput, parseInput } from "./node-values.ts";
import { isNodeFailed, type Attempt } from "./attempt.ts";
import type { NodePlay, NodeResult } from "./running.ts";
import { withRetries } from "./node-attempts.ts";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";

/** Executes a node that has `run` until an attempt succeeds. Each attempt is a step of the engine. Throws NodeFailed and AttemptsFailed. */
export async function playAttempts(type: ports.WorkflowNode, play: NodePlay): Promise<NodeResult> {
  const { running, node, nodeId } = play;
  const { idempotent } = node;
  const input = parseInput(type.input, play.inputs);
  const isRepeatable = idempotent ?? (typeof type.repeatable === "function" ? type.repeatable(input) : type.repeatable);
  return withRetries(play, async (attempt) => {
    const work = (signal: AbortSignal) => attemptOnce(play, { type, input, attempt, signal });
    // A pure node only computes, and does so again whenever its run continues.
    if (type.pure) return work(play.frame.signal);
    const result = await running.context.step<Attempt>(
      workName(nodeId, `#${attempt}`),
      async (signal) => {
        // An earlier execution may have been interrupted after it had saved files.
        if (running.context.attempt > 1) await forgetFiles(play, attempt);
        return traced(play, attempt, () => work(signal));
      },
      { repeatable: isRepeatable },
    );
    return result.isOk && result.hidden ? { ...result, output: await openOutput(running, result) } : result;
  });
}

function forgetFiles({ running, nodeId }: NodePlay, attempt: number): Promise<void> {
  return retryWhileStoreAway(running.storeRetry, async () => running.files?.forget(workName(nodeId, `#${attempt}`)));
}

async function traced(
  { running: { services, record }, node, nodeId }: NodePlay,
  attempt: number,
  work: () => Promise<Attempt>,
): Promise<Attempt> {
  const trace = services.telemetry.work({ kind: "node", type: node.rules.type, node: nodeId, run: record.runId, attempt });
  try {
    const result = await trace.run(work);
    trace.end({ error: result.isOk ? undefined : result.code });
    return result;
  } finally {
    trace.end();
  }
}

async function attemptOnce(
  play: NodePlay,
  given: { readonly type: ports.WorkflowNode; readonly input: unknown; readonly attempt: number; readonly signal: AbortSignal },
): Promise<Attempt> {
  const { running, node, nodeId, frame } = play;
  const { type, input, attempt, signal } = given;
  const { secrecy } = running;
  const { clock, telemetry } = running.services;
  const { runId, workflowId, userId, depth: workflowDepth = 0, resumes } = running.record;
  const isOfChain = resumes && !endsItsRun(running.definition, nodeId);
  const originalRunId = isOfChain && { originalRunId: resumes.renewed?.[outermost(nodeId)] ?? resumes.originalRunId };
  const startedAt = clock.now();
  let usage: ports.ModelUsage | undefined;
  const stop = node.timeoutMs === undefined ? undefined : new AbortController();
  const timer = stop && clock.after(node.timeoutMs!, () => stop.abort());
  const isPure = type.pure ?? false;
  const ended = isPure ? signal : eitherEnded(signal, frame.signal);
  const stopped = stop && !isPure ? AbortSignal.any([ended, stop.signal]) : ended;
  // Files are not encrypted, and the result of a pure node is not stored.
  const files = isPure || node.sensitive ? undefined : running.files?.forAttempt(workName(nodeId, `#${attempt}`), stopped);
  try {
    const working = type.run({
      input,
      step: { runId, ...originalRunId, workflowId, nodeId, attempt, userId, workflowDepth },
      signal: stopped,
      used: ({ inputTokens, outputTokens, cost, currency }) =>
        (usage = addModelUsage(usage, { inputTokens, outputTokens, cost, currency })),
      ...(files && { files: withHandledRejections(files) }),
      isSecret: secrecy.isIn,
    });
    // A node that ignores its signal must delay neither its run nor the process.
    const output = await orAborted(working, stopped);
    assertSize(output);
    const endedAt = clock.now();
    if (node.sensitive) secrecy.learn(output, node.sensitive);
    // Most runs have no secrets. Results of pure nodes are computed again instead of stored.
    if (isPure || (!node.sensitive && secrecy.isIdle)) return { isOk: true, output: output ?? null, startedAt, endedAt, usage };
    return { isOk: true, ...(await rememberable(play, output ?? null)), startedAt, endedAt, usage };
  } catch (thrown) {
    // The run itself stopped the attempt, so this is not a result of the attempt. The thrown error may contain a secret, and would be stored.
    if (signal.aborted) throw signal.reason;
    // What cannot be removed now goes with the run.
    await files
      ?.discard()
      .catch((error: unknown) => telemetry.log.warn("Files of a failed attempt stay for now", { runId, nodeId }, error));
    if (frame.signal.aborted) throw frame.signal.reason;
    if (stop?.signal.aborted)
      return { isOk: false, code: "timeout", message: "The attempt took too long", isFinal: false, usage };
    if (isNodeFailed(thrown)) {
      const { code, retryable, retryAfterMs } = thrown;
      // The body may repeat what the node hides.
      const answered = node.sensitive && thrown.answer ? { status: thrown.answer.status } : thrown.answer;
      const answer = storedAnswer(answered, secrecy);
      return { isOk: false, code, message: secrecy.mask(thrown.message), isFinal: !retryable, answer, retryAfterMs, usage };
    }
    telemetry.log.error("A node failed unexpectedly", { runId, nodeId }, thrown);
    return {
      isOk: false,
      code: "node_failed",
      message: "The node failed unexpectedly; the service's log says why",
      isFinal: false,
      usage,
    };
  } finally {
    timer?.cancel();
  }
}

/** The form of an output that may be stored. Retries while the sealing key is unavailable, because a failure would lose the result. */
async function rememberable(
  { running, node }: NodePlay,
  output: unknown,
): Promise<Pick<Attempt & { isOk: true }, "output" | "hidden">> {
  const { record, secrecy } = running;
  const { value, hidden } = await retryWhileStoreAway(running.storeRetry, () =>
    secrecy.toStored(record.runId, output, node.sensitive),
  );
  return hidden ? { output: value, hidden } : { output };
}

/** The joined signals of frames by the signal of the work. */
const joined = new WeakMap<AbortSignal, { readonly work: AbortSignal; readonly either: AbortSignal }>();

/**
 * A signal that aborts with the signal of a work or of one of its frames, with the reason of the first. All attempts of a frame share it,
 * because making one costs as much as a short step.
 */
function eitherEnded(work: AbortSignal, frame: AbortSignal): AbortSignal {
  const known = joined.get(frame);
  if (known?.work === work) return known.either;
  const either = AbortSignal.any([work, frame]);
  joined.set(frame, { work, either });
  return either;
}

/** A failed answer as it is stored and shown: without secrets, and with the beginning of a body that is too long. */
function storedAnswer(
  answer: ports.FailedAnswer | undefined,
  secrecy: Pick<RunSecrecy, "mask" | "maskBeginning">,
): ports.FailedAnswer | undefined {
  if (!answer) return undefined;
  const { status, body, bodyTruncated } = answer;
  if (hasMoreLevels(body, LEVELS)) return { status };
  // Secrets are masked first: a part of one is not found.
  const masked = bodyTruncated && typeof body === "string" ? secrecy.maskBeginning(body) : secrecy.mask(jsonOf(body));
  if (masked === undefined) return { status };
  if (fits(masked)) return { status, body: masked, ...(bodyTruncated && { bodyTruncated }) };
  return { status, body: beginningOf(typeof masked === "string" ? masked : JSON.stringify(masked)), bodyTruncated: true };
}

const LEVELS = 100;

/** The value as JSON keeps it. */
function jsonOf(value: unknown): unknown {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

function fits(body: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(body)) <= ports.FAILED_BODY_BYTES;
}

/** As many of the first characters as fit. */
function beginningOf(text: string): string {
  let [fitting, most] = [0, ports.FAILED_BODY_BYTES];
  while (fitting < most) {
    const length = Math.ceil((fitting + most) / 2);
    if (fits(text.slice(0, length))) fitting = length;
    else most = length - 1;
  }
  // Without half a character at its end.
  return text.slice(0, fitting).replace(/[\uD800-\uDBFF]$/, "");
}
