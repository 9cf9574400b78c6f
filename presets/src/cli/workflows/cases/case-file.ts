import { dirname, resolve } from "node:path";
import { RUN_STATUSES } from "@portico/plugins/workflow-service/contract";
import * as v from "valibot";
import { parseDocument } from "yaml";
import { CommandFailed, EXIT } from "../../exit-codes.ts";
import { readNamedFile } from "../../named-file.ts";

const object = v.record(v.string(), v.unknown());
const text = v.pipe(v.string(), v.nonEmpty());
const answer = v.union([
  v.strictObject({ output: v.unknown() }),
  v.strictObject({
    error: v.strictObject({
      code: text,
      message: v.optional(v.string(), "The case lets this node fail"),
      retryable: v.optional(v.boolean(), true),
    }),
  }),
]);
const decision = v.union([
  v.literal("timeout"),
  v.strictObject({
    decision: v.picklist(["approve", "reject"]),
    values: v.optional(object),
    comment: v.optional(v.string()),
  }),
]);
const nodeStatus = v.picklist(["completed", "failed", "skipped", "cancelled"]);

const testCase = v.strictObject({
  name: text,
  parameters: v.optional(object, {}),
  /** By node id: one answer for all attempts, or one per attempt. The last is repeated. */
  nodes: v.optional(v.record(v.string(), v.union([answer, v.pipe(v.array(answer), v.nonEmpty())])), {}),
  gates: v.optional(v.record(v.string(), decision), {}),
  expect: v.strictObject({
    status: v.picklist(RUN_STATUSES.filter((status) => status !== "running" && status !== "waiting_human")),
    outputs: v.optional(v.unknown()),
    error: v.optional(v.strictObject({ code: v.optional(text), message: v.optional(text), nodeId: v.optional(text) })),
    nodes: v.optional(v.record(v.string(), nodeStatus), {}),
  }),
});

const caseFile = v.strictObject({
  definition: text,
  secrets: v.optional(v.record(v.string(), v.string()), {}),
  cases: v.pipe(v.array(testCase), v.nonEmpty("There is at least one case")),
});

export type NodeAnswer = v.InferOutput<typeof answer>;
export type TestCase = v.InferOutput<typeof testCase>;

/** The cases of one definition. */
export interface CaseFile extends v.InferOutput<typeof caseFile> {
  readonly file: string;
  /** Path of the definition's file. */
  readonly definition: string;
}

/** Read a file of cases. Throws CommandFailed: 66 if it cannot be read, 1 with its problems if it is invalid. */
export async function readCaseFile(file: string): Promise<CaseFile> {
  const document = parseDocument(await readNamedFile(file), { version: "1.2", schema: "core", prettyErrors: true });
  const [fault] = document.errors;
  if (fault) throw new CommandFailed(`${file}: Invalid YAML: ${fault.message.split("\n")[0]}`, EXIT.failed);
  const { success, output, issues } = v.safeParse(
    caseFile,
    toValue(file, () => document.toJS({ maxAliasCount: 1000 })),
  );
  if (!success) {
    const problems = issues.map((issue) => `${file}: ${v.getDotPath(issue) ?? "document"}: ${issue.message}`);
    throw new CommandFailed(problems.join("\n"), EXIT.failed);
  }
  const names = output.cases.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new CommandFailed(`${file}: Two cases have the name "${twice}"`, EXIT.failed);
  return { ...output, file, definition: resolve(dirname(file), output.definition) };
}

function toValue(file: string, read: () => unknown): unknown {
  try {
    return read();
  } catch (cause) {
    throw new CommandFailed(`${file}: Invalid YAML: too many aliases`, EXIT.failed, cause);
  }
}
