import { jsonObject, maxCharacters, objectOnly, record } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import * as v from "valibot";
import { type CaseProblems, readCaseText } from "../cases/read-cases.ts";

/** Why a completed turn can have ended. */
export const TURN_ENDS = ["completed", "max_turns", "max_tokens", "refusal", "content_filter", "empty_answer"] as const;

/** Maximum size of a file of cases, in characters. */
const FILE_CHARACTERS = 1024 * 1024;
/** Maximum entries of each list of a case, and cases of a file. */
const ENTRIES = 200;
const CASES = 500;
/** Maximum characters of a name, and of a regular expression. */
const NAME_CHARACTERS = 1000;
const PATTERN_CHARACTERS = 1000;
/** Maximum criteria of an answer for a judge, and characters of one. */
const CRITERIA = 20;
const CRITERION_CHARACTERS = 4000;

const name = v.pipe(v.string(), v.nonEmpty(), maxCharacters(NAME_CHARACTERS));
const listOf = <S extends v.GenericSchema>(each: S) => v.pipe(v.array(each), v.maxLength(ENTRIES));
const oneOrMore = <S extends v.GenericSchema>(each: S) => v.union([each, v.pipe(listOf(each), v.nonEmpty())]);
const criterion = v.pipe(v.string(), v.nonEmpty(), maxCharacters(CRITERION_CHARACTERS));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const amount = v.pipe(v.number(), v.finite(), v.minValue(0));

const usage = objectOnly(
  v.strictObject({
    input: v.optional(count),
    output: v.optional(count),
    cachedInput: v.optional(count),
    cacheWrite: v.optional(count),
  }),
);

const modelError = v.strictObject({
  kind: v.picklist([
    "invalid-request",
    "authentication",
    "permission",
    "billing",
    "not-found",
    "too-large",
    "rate-limit",
    "timeout",
    "overloaded",
    "upstream",
    "internal",
  ]),
  message: v.optional(v.string(), "The case lets this call fail"),
  status: v.optional(v.pipe(v.number(), v.integer(), v.minValue(400), v.maxValue(599))),
});

const modelAnswer = v.pipe(
  objectOnly(
    v.strictObject({
      thinking: v.optional(v.string()),
      text: v.optional(v.string()),
      calls: v.optional(listOf(v.strictObject({ tool: name, arguments: v.optional(jsonObject, {}) })), []),
      /** Why the answer ended otherwise than by itself. */
      stop: v.optional(v.picklist(["max_tokens", "refusal"])),
      usage: v.optional(usage),
      /** After a text, the answer breaks off there. */
      error: v.optional(modelError),
    }),
  ),
  v.check(
    ({ text, calls, error }) => text !== undefined || calls.length > 0 || error !== undefined,
    "Expected text, calls or error",
  ),
);

const toolAnswer = v.pipe(
  objectOnly(v.strictObject({ output: v.optional(v.unknown()), error: v.optional(v.string()) })),
  v.check((answer) => "output" in answer !== "error" in answer, "Expected either output or error"),
);

const toolDefinition = objectOnly(
  v.strictObject({
    description: v.optional(v.string(), "A tool of a case"),
    inputSchema: v.optional(jsonObject, { type: "object" }),
    riskLevel: v.optional(v.picklist(["low", "medium", "high", "critical"]), "low"),
    requiresConfirmation: v.optional(v.boolean(), false),
  }),
);

const decision = v.union([
  v.picklist(["approve", "reject"]),
  v.strictObject({
    decision: v.picklist(["approve", "reject"]),
    arguments: v.optional(jsonObject),
    comment: v.optional(v.pipe(v.string(), maxCharacters(4096))),
  }),
]);

const textCheck = v.union([
  v.string(),
  objectOnly(
    v.strictObject({
      contains: v.optional(oneOrMore(v.string())),
      excludes: v.optional(oneOrMore(v.string())),
      /** RE2. */
      matches: v.optional(v.pipe(v.string(), maxCharacters(PATTERN_CHARACTERS))),
      /** The text must be JSON. */
      schema: v.optional(jsonObject),
    }),
  ),
]);

const callCheck = v.union([
  name,
  v.strictObject({
    tool: name,
    /** Equal. */
    arguments: v.optional(jsonObject),
    /** These members are equal; others are allowed. */
    contain: v.optional(jsonObject),
    schema: v.optional(jsonObject),
    isError: v.optional(v.boolean()),
  }),
]);

const expectation = objectOnly(
  v.strictObject({
    status: v.optional(v.picklist(["completed", "failed", "interrupted", "waiting"]), "completed"),
    /** Why a completed turn ended. */
    end: v.optional(v.picklist(TURN_ENDS)),
    error: v.optional(objectOnly(v.strictObject({ code: v.optional(name), message: v.optional(textCheck) }))),
    output: v.optional(textCheck),
    /** What must be true of the answer, in words. Only a judge checks it. */
    judge: v.optional(v.union([criterion, v.pipe(v.array(criterion), v.nonEmpty(), v.maxLength(CRITERIA))])),
    /** All calls of tools, in order. */
    calls: v.optional(listOf(callCheck)),
    /** Each of these is among the calls. */
    includes: v.optional(listOf(callCheck)),
    /** These tools are not called. */
    excludes: v.optional(listOf(name)),
    atMost: v.optional(
      objectOnly(
        v.strictObject({
          modelCalls: v.optional(count),
          toolCalls: v.optional(count),
          inputTokens: v.optional(count),
          outputTokens: v.optional(count),
          tokens: v.optional(count),
          cost: v.optional(amount),
        }),
      ),
      {},
    ),
  }),
);

const testCase = v.strictObject({
  name,
  /** What the user says, one turn for each. */
  messages: v.pipe(
    listOf(
      v.union([
        v.pipe(v.string(), v.nonEmpty()),
        v.strictObject({ text: v.pipe(v.string(), v.nonEmpty()), expect: v.optional(expectation) }),
      ]),
    ),
    v.nonEmpty("Expected at least one message"),
  ),
  /** The answers of the model, one for each call. */
  model: v.optional(listOf(modelAnswer)),
  /** By tool id: one answer for all calls, or one for each. The last is repeated. */
  tools: v.optional(record(name, oneOrMore(toolAnswer)), {}),
  /** By tool id: one decision for all calls, or one for each. The last is repeated. */
  approvals: v.optional(record(name, oneOrMore(decision)), {}),
  /** Of all turns together; status, end, error and output are those of the last one. */
  expect: v.optional(expectation, {}),
});

const caseFile = v.strictObject({
  /** The id of an agent of the project, or the path of an `agent.json`, relative to this file. */
  agent: name,
  /** Tools that the case stands in for, by id. */
  tools: v.optional(record(name, toolDefinition), {}),
  cases: v.pipe(v.array(testCase), v.nonEmpty("Expected at least one case"), v.maxLength(CASES)),
});

/** The cases of one agent, as they are written. */
export type AgentCases = v.InferOutput<typeof caseFile>;
/** One case of an agent. */
export type AgentCase = v.InferOutput<typeof testCase>;
/** What a turn, or a whole case, must have done. */
export type Expectation = v.InferOutput<typeof expectation>;
/** One answer of the scripted model. */
export type ScriptedAnswer = v.InferOutput<typeof modelAnswer>;
/** One answer of a scripted tool. */
export type ToolAnswer = v.InferOutput<typeof toolAnswer>;
/** A tool that the cases stand in for. */
export type ScriptedTool = v.InferOutput<typeof toolDefinition>;
/** The requirements of a text. */
export type TextCheck = v.InferOutput<typeof textCheck>;
/** The requirements of one call of a tool. */
export type CallCheck = v.InferOutput<typeof callCheck>;

/** Reads the text of a file of cases, and tries its JSON Schemas and expressions. */
export async function readAgentCases(text: string, checks: SchemaChecks): Promise<{ readonly cases: AgentCases } | CaseProblems> {
  if (text.length > FILE_CHARACTERS) return { problems: [`Expected at most ${FILE_CHARACTERS} characters`] };
  const read = readCaseText(caseFile, text);
  if ("problems" in read) return read;
  const problems: string[] = [];
  for (const { path, schema } of schemasOf(read.cases)) {
    const inspected = await checks.inspect(schema);
    if ("unusable" in inspected) problems.push(`${path}: ${inspected.unusable}`);
  }
  return problems.length > 0 ? { problems } : read;
}

/** The JSON Schema of texts that match a regular expression, which checks by JSON Schemas execute with RE2, in linear time. */
export function schemaOfPattern(pattern: string): Readonly<Record<string, unknown>> {
  return { type: "string", pattern };
}

interface PlacedSchema {
  readonly path: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

function* schemasOf({ tools, cases }: AgentCases): Generator<PlacedSchema> {
  for (const [id, { inputSchema }] of Object.entries(tools)) yield { path: `tools.${id}.inputSchema`, schema: inputSchema };
  for (const [at, { messages, expect }] of cases.entries()) {
    yield* schemasOfExpectation(`cases.${at}.expect`, expect);
    for (const [number, message] of messages.entries())
      if (typeof message !== "string" && message.expect)
        yield* schemasOfExpectation(`cases.${at}.messages.${number}.expect`, message.expect);
  }
}

function* schemasOfExpectation(path: string, expected: Expectation): Generator<PlacedSchema> {
  yield* schemasOfText(`${path}.output`, expected.output);
  yield* schemasOfText(`${path}.error.message`, expected.error?.message);
  for (const key of ["calls", "includes"] as const)
    for (const [at, call] of (expected[key] ?? []).entries())
      if (typeof call !== "string" && call.schema) yield { path: `${path}.${key}.${at}.schema`, schema: call.schema };
}

function* schemasOfText(path: string, check: TextCheck | undefined): Generator<PlacedSchema> {
  if (check === undefined || typeof check === "string") return;
  if (check.schema) yield { path: `${path}.schema`, schema: check.schema };
  if (check.matches !== undefined) yield { path: `${path}.matches`, schema: schemaOfPattern(check.matches) };
}
