import { nodePath } from "./node-path.ts";
import type { FollowedRun } from "./apply-event.ts";
import type { NodeResult } from "./workflow-calls.ts";

/** `portico workflow test` executes nodes of these types, and they take no answer. */
export const EXECUTED: ReadonlySet<string> = new Set(["branch", "code", "fail", "loop", "map", "transform", "wait"]);
const ENDED = ["completed", "failed", "skipped", "cancelled"];

/** A file of cases for `portico workflow test` with one case: the run, with the answers that its nodes got. */
export function toTestFile(run: FollowedRun, dslPath: string): Record<string, unknown> {
  const results = Object.entries(run.nodeResults);
  const ended = results.filter(([, { status }]) => status === "completed" || status === "failed");
  const nodes = ended.filter(([, { type }]) => !EXECUTED.has(type) && type !== "human_gate");
  const gates = ended.filter(([, { type }]) => type === "human_gate");
  const top = results.filter(([key, { status }]) => nodePath(key).length === 1 && ENDED.includes(status));
  const { parameters, error, finalOutputs } = run;
  return {
    definition: `../workflows/${dslPath}`,
    cases: [
      {
        name: `like ${run.runId}`,
        ...(isFilled(parameters) && { parameters }),
        ...(nodes.length > 0 && { nodes: Object.fromEntries(nodes.map(([key, node]) => [key, answerOf(node)])) }),
        ...(gates.length > 0 && { gates: Object.fromEntries(gates.map(([key, node]) => [key, decisionOf(node)])) }),
        expect: {
          status: run.status,
          ...(run.status === "completed" && { outputs: finalOutputs ?? {} }),
          ...(error && { error: { code: error.code, ...(error.nodeId !== undefined && { nodeId: error.nodeId }) } }),
          ...(top.length > 0 && { nodes: Object.fromEntries(top.map(([key, { status }]) => [key, status])) }),
        },
      },
    ],
  };
}

function answerOf({ outputs, error, attempts }: NodeResult): unknown {
  if (!error) return { output: outputs ?? null };
  const { code, message, status, body } = error;
  const answered = { ...(status !== undefined && { status }), ...(body !== undefined && { body }) };
  // After several attempts, the last error was repeated, too.
  return { error: { code, message, ...answered, ...(attempts <= 1 && { retryable: false }) } };
}

function decisionOf({ outputs }: NodeResult): unknown {
  const { decision = "reject", values, comment } = (outputs ?? {}) as Readonly<Record<string, unknown>>;
  if (comment === "timeout") return "timeout";
  return { decision, ...(isFilled(values) && { values }), ...(typeof comment === "string" && { comment }) };
}

function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}
