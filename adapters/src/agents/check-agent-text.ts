import { nearestWord, type ports } from "@portico/core";
import * as v from "valibot";
import { agentFileSchema, parseAgentText, readAgentText } from "./agent-file.ts";

/** Maximum problems that are told. Authors see further ones after they have corrected the first. */
const TOLD_PROBLEMS = 100;

/** What is wrong in the text of an `agent.json`, by the schema with which the file is read. Messages have no values of the text. */
export function checkAgentText(text: string): readonly ports.AgentTextProblem[] {
  const parsed = parseAgentText(text);
  if ("metadataError" in parsed) return [wrong([], parsed.message)];
  const { given } = parsed;
  const { issues = [] } = v.safeParse(agentFileSchema, given);
  const unused = Object.keys(agentFileSchema.entries).filter((key) => !Object.hasOwn(given, key));
  const { unknownKeys = [] } = readAgentText("unnamed", text);
  return [
    ...issues.slice(0, TOLD_PROBLEMS).map(toProblem),
    ...unknownKeys.map((key) => ({ severity: "warning" as const, path: [key], message: unknownKey(key, unused) })),
  ];
}

function toProblem(issue: v.BaseIssue<unknown>): ports.AgentTextProblem {
  const path = (issue.path ?? []).map(({ key }) => (typeof key === "number" ? key : String(key)));
  const key = path.at(-1);
  if (issue.type === "strict_object" && issue.expected === "never") return wrong(path, `There is no key "${key}" here`);
  if (issue.kind === "schema" && issue.input === undefined) return wrong(path, `The key "${key}" is missing`);
  // valibot's own messages begin like this, and quote the value. Any other message was written as the expected value.
  return wrong(path, `Expected ${issue.message.startsWith("Invalid ") ? inWords(issue) : issue.message}`);
}

/** What valibot writes as comparisons: of numbers, of lengths of lists, and of texts that must not be empty. */
function inWords({ type, expected, input }: v.BaseIssue<unknown>): string {
  if (type === "non_empty") return "a text that is not empty";
  const [, comparison, bound] = /^([<>]=)(.*)$/.exec(expected ?? "") ?? [];
  if (comparison === undefined) return expected ?? "another value";
  const unit = type.endsWith("_entries")
    ? " entries"
    : type.endsWith("_length")
      ? typeof input === "string"
        ? " characters"
        : " items"
      : "";
  return `at ${comparison === "<=" ? "most" : "least"} ${bound}${unit}`;
}

function wrong(path: ports.AgentTextProblem["path"], message: string): ports.AgentTextProblem {
  return { severity: "error", path, message };
}

function unknownKey(key: string, unused: readonly string[]): string {
  const nearest = nearestWord(key, unused);
  return `The key "${key}" has no effect${nearest === undefined ? "" : `: did you mean "${nearest}"?`}`;
}
