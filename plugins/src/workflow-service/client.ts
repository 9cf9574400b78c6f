import type { CallResult } from "@portico/core/client";
import type { workflowServiceContract } from "./contract.ts";

// What programs that start workflows and decide at gates share with the service. It runs in browsers.
export { faultsByField, type FormField, formFields, readValues, type ReadValues } from "./approvals/form-fields.ts";

type RunDetail = CallResult<typeof workflowServiceContract.run>;
type NodeResult = NonNullable<RunDetail["nodeResults"]>[string];

/** Types of nodes that a case of `portico workflow test` executes, without an answer of the case. */
export const EXECUTED_IN_CASES: ReadonlySet<string> = new Set(["branch", "code", "fail", "loop", "map", "transform", "wait"]);
const ENDED = ["completed", "failed", "skipped", "cancelled"];

/** A file of cases for `portico workflow test` with one case. `definition` is the path of the definition, relative to the file of cases. */
export function caseFileOfRun(run: RunDetail, definition: string): Record<string, unknown> {
  return { definition, cases: [caseOfRun(run)] };
}

/** An ended run as a case, with the answers that its nodes got. Secrets are masked, as in the history of the run. */
export function caseOfRun(run: RunDetail): Record<string, unknown> & { readonly name: string } {
  const results = Object.entries(run.nodeResults ?? {});
  const ended = results.filter(([, { status }]) => status === "completed" || status === "failed");
  const nodes = ended.filter(([, { type }]) => !EXECUTED_IN_CASES.has(type) && type !== "human_gate" && type !== "callback");
  const gates = ended.filter(([, { type }]) => type === "human_gate");
  const callbacks = ended.filter(([, { type }]) => type === "callback");
  const isAnswered = ({ status, error }: NodeResult) => status === "completed" || error?.code === "callback_timeout";
  const called = callbacks.filter(([, node]) => isAnswered(node));
  // Their requests failed.
  nodes.push(...callbacks.filter(([, node]) => !isAnswered(node)));
  const top = results.filter(([key, { status }]) => !isInside(key) && ENDED.includes(status));
  const { parameters, error, finalOutputs } = run;
  return {
    name: `like ${run.runId}`,
    ...(isFilled(parameters) && { parameters }),
    ...(nodes.length > 0 && { nodes: Object.fromEntries(nodes.map(([key, node]) => [key, answerOf(node)])) }),
    ...(gates.length > 0 && { gates: Object.fromEntries(gates.map(([key, node]) => [key, decisionOf(node)])) }),
    ...(called.length > 0 && { callbacks: Object.fromEntries(called.map(([key, node]) => [key, eventOf(node)])) }),
    expect: {
      status: run.status,
      ...(run.status === "completed" && { outputs: finalOutputs ?? {} }),
      ...(error && { error: { code: error.code, ...(error.nodeId !== undefined && { nodeId: error.nodeId }) } }),
      ...(top.length > 0 && { nodes: Object.fromEntries(top.map(([key, { status }]) => [key, status])) }),
    },
  };
}

/** Whether a node is inside of an element of a `map` or `loop`: `each[3].read`. */
function isInside(key: string): boolean {
  return key.includes(".");
}

function answerOf({ outputs, error, attempts }: NodeResult): unknown {
  if (!error) return { output: outputs ?? null };
  const { code, message, status, body } = error;
  const answered = { ...(status !== undefined && { status }), ...(body !== undefined && { body }) };
  // After several attempts, the last error was repeated, too.
  return { error: { code, message, ...answered, ...(attempts <= 1 && { retryable: false }) } };
}

function eventOf({ status, outputs }: NodeResult): unknown {
  return status === "completed" ? { event: outputs ?? null } : "timeout";
}

function decisionOf({ outputs }: NodeResult): unknown {
  const { decision = "reject", values, comment } = (outputs ?? {}) as Readonly<Record<string, unknown>>;
  if (comment === "timeout") return "timeout";
  return { decision, ...(isFilled(values) && { values }), ...(typeof comment === "string" && { comment }) };
}

function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}
