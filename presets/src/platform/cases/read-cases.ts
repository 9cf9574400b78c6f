import { hasMoreLevels } from "@portico/core";
import * as v from "valibot";
import { parseDocument } from "yaml";

/** What is wrong with a file of cases: one line for each place, which says what was expected. */
export interface CaseProblems {
  readonly problems: readonly string[];
}

/** Maximum levels of lists and objects. */
const LEVELS = 100;
/** Aliases multiply what they repeat. */
const ALIASES = 1000;
/** Maximum problems of a file that are reported. */
const TOLD = 50;

/** Reads the text of a file of cases, which is YAML. Its cases must have different names. */
export function readCaseText<T extends { readonly cases: readonly { readonly name: string }[] }>(
  schema: v.GenericSchema<unknown, T>,
  text: string,
): { readonly cases: T } | CaseProblems {
  const read = readYaml(text);
  if ("problems" in read) return read;
  const { success, output, issues } = v.safeParse(schema, read.value);
  if (!success) return { problems: issues.slice(0, TOLD).map(problemOf) };
  const names = output.cases.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? { cases: output } : { problems: [`Two cases have the name "${twice}"`] };
}

function readYaml(text: string): { readonly value: unknown } | CaseProblems {
  try {
    const document = parseDocument(text, { version: "1.2", schema: "core", prettyErrors: true });
    const [fault] = document.errors;
    if (fault) return { problems: [`Invalid YAML: ${fault.message.split("\n")[0]}`] };
    const value: unknown = document.toJS({ maxAliasCount: ALIASES });
    return hasMoreLevels(value, LEVELS) ? TOO_DEEP : { value };
  } catch (error) {
    // The parser recurses.
    if (error instanceof RangeError) return TOO_DEEP;
    return { problems: ["Invalid YAML: too many aliases"] };
  }
}

const TOO_DEEP: CaseProblems = { problems: [`Invalid YAML: more than ${LEVELS} levels`] };

/** The place and what was expected there. Of a choice between forms, the problem of the form that the value resembles most. */
function problemOf(issue: v.BaseIssue<unknown>): string {
  const path: (string | number)[] = [];
  let told = issue;
  for (;;) {
    path.push(...(told.path ?? []).map(({ key }) => key as string | number));
    const [nearest] = (told.issues ?? []).toSorted((one, other) => lengthOf(other) - lengthOf(one));
    if (!nearest || lengthOf(nearest) === 0) break;
    told = nearest;
  }
  return `${path.length === 0 ? "document" : path.join(".")}: ${told.message}`;
}

/** Forms that do not resemble the value fail at the value itself, and not inside of it. */
function lengthOf({ path }: v.BaseIssue<unknown>): number {
  return path?.length ?? 0;
}
