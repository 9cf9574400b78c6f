import { jsonObject, record } from "@portico/core";
import { RUN_STATUSES } from "@portico/plugins/workflow-service/contract";
import * as v from "valibot";
import { type CaseProblems, readCaseText } from "../cases/read-cases.ts";

const object = jsonObject;
const text = v.pipe(v.string(), v.nonEmpty());
const nodeError = v.pipe(
  v.strictObject({
    code: text,
    message: v.optional(v.string(), "The case lets this node fail"),
    retryable: v.optional(v.boolean(), true),
    /** The answer of a service, as in the error of an `http` node. */
    status: v.optional(v.pipe(v.number(), v.integer(), v.minValue(100), v.maxValue(599))),
    body: v.optional(v.unknown()),
  }),
  v.check(({ status, body }) => body === undefined || status !== undefined, "body needs status"),
);
const answer = v.union([v.strictObject({ output: v.unknown() }), v.strictObject({ error: nodeError })]);
const decision = v.union([
  v.literal("timeout"),
  v.strictObject({
    decision: v.picklist(["approve", "reject"]),
    values: v.optional(object),
    comment: v.optional(v.string()),
  }),
]);
const callback = v.union([v.literal("timeout"), v.strictObject({ event: v.unknown() })]);
const nodeStatus = v.picklist(["completed", "failed", "skipped", "cancelled"]);

const testCase = v.strictObject({
  name: text,
  parameters: v.optional(object, {}),
  /** By node id: one answer for all attempts, or one per attempt. The last is repeated. */
  nodes: v.optional(record(v.string(), v.union([answer, v.pipe(v.array(answer), v.nonEmpty())])), {}),
  gates: v.optional(record(v.string(), decision), {}),
  /** By node id: one event for all attempts, or one per attempt. The last is repeated. */
  callbacks: v.optional(record(v.string(), v.union([callback, v.pipe(v.array(callback), v.nonEmpty())])), {}),
  expect: v.strictObject({
    status: v.picklist(RUN_STATUSES.filter((status) => status !== "running" && status !== "waiting_human")),
    outputs: v.optional(v.unknown()),
    error: v.optional(v.strictObject({ code: v.optional(text), message: v.optional(text), nodeId: v.optional(text) })),
    nodes: v.optional(record(v.string(), nodeStatus), {}),
  }),
});

const caseFile = v.strictObject({
  definition: text,
  secrets: v.optional(record(v.string(), v.string()), {}),
  cases: v.pipe(v.array(testCase), v.nonEmpty("There is at least one case")),
});

const casesOfText = v.strictObject({ ...caseFile.entries, definition: v.optional(text) });

/** What a node answers instead of being executed. */
export type NodeAnswer = v.InferOutput<typeof answer>;
/** One case of a definition. */
export type TestCase = v.InferOutput<typeof testCase>;

/** The cases of one definition, as they are written. */
export type WrittenCases = v.InferOutput<typeof caseFile>;
/** The same in a service, which knows the definition. */
export type CasesOfText = Omit<WrittenCases, "definition">;

/** Read the text of a file of cases. */
export function readCases(text: string): { readonly cases: WrittenCases } | CaseProblems {
  return readCaseText(caseFile, text);
}

/** The same without `definition`. */
export function readCasesOfText(text: string): { readonly cases: CasesOfText } | CaseProblems {
  return readCaseText(casesOfText, text);
}
