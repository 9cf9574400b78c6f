import { type Node, type ParseError, findNodeAtLocation, parseTree } from "jsonc-parser";
import { hasMoreLevels, type ports, withoutEnd } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import { withoutByteOrderMark } from "@portico/core/kit";
import { AGENT_TEXT_BYTES } from "./contract.ts";

/** Maximum problems of a text that are told. */
const TEXT_PROBLEMS = 100;
/** Objects and lists within each other in a text whose tools and skills are looked at. */
const LEVELS = 100;

/** A problem with its place in the text. Lines and columns are counted from 1. */
export interface PlacedProblem {
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** JSONPath. */
  readonly path: string;
  readonly message: string;
}

/** What is wrong in a text: its errors and then its warnings, `TEXT_PROBLEMS` at most. `before` is the text that it replaces, `userId` its author. */
export function checkText(
  texts: Pick<ports.AgentTexts, "check">,
  {
    text,
    before,
    userId,
    named = [],
  }: {
    readonly text: string;
    readonly before: string | undefined;
    readonly userId: string | undefined;
    /** Problems of what the text names. */
    readonly named?: readonly ports.AgentTextProblem[];
  },
): PlacedProblem[] {
  if (Buffer.byteLength(text) > AGENT_TEXT_BYTES) {
    return [placed([0], 0, { severity: "error", path: [], message: `The text has at most ${AGENT_TEXT_BYTES} bytes` })];
  }
  const found = [...texts.check(text), ...foreignFileScopes(text, before, userId), ...named];
  if (found.length === 0) return [];
  // A text is refused for its errors, so warnings never take their places.
  const told = [...found.filter(isError), ...found.filter((each) => !isError(each))].slice(0, TEXT_PROBLEMS);
  // Offsets are those of the text without its byte order mark, which editors do not count either.
  const shown = withoutByteOrderMark(text);
  const { root, fault } = treeOf(shown);
  const lines = lineStarts(shown);
  return told.map((problem) => placed(lines, offsetOf(root, problem.path) ?? fault, problem));
}

/** A problem of what a text names. */
export interface NamedProblem extends ports.AgentTextProblem {
  /** The tool, the skill or the key that it is about. */
  readonly name: string;
}

/** The tools and skills that a text names, and that turns would not get now: warnings. Empty for a text that is not an object. */
export async function namedProblems(
  turns: Pick<ports.BackgroundTurns, "problems"> | undefined,
  id: string,
  text: string,
  signal: AbortSignal,
): Promise<readonly NamedProblem[]> {
  const written = parsed(text);
  if (!turns?.problems || !written) return [];
  const outputSchema = isRecord(written["outputSchema"]) ? written["outputSchema"] : undefined;
  const scheduled = list(written["schedules"]).map((schedule) => (isRecord(schedule) ? list(schedule["tools"]) : []));
  const tools = texts([...list(written["tools"]), ...scheduled.flat()]);
  const [skills, resources, prompts] = ["skills", "resources", "prompts"].map((key) => texts(list(written[key])));
  const memory = written["memory"] === true || isRecord(written["memory"]) ? {} : undefined;
  const definition = { tools, skills: skills!, resources, prompts, outputSchema, memory };
  const problems = await turns.problems({ id, definition }, signal);
  return problems.map(({ at, name, message }) => {
    // The name of a skill is its path without a slash at its end.
    const index = list(written[at]).findIndex(
      (each) => typeof each === "string" && (each === name || withoutEnd(each, "/") === name),
    );
    const schedule = at === "tools" && index < 0 ? scheduled.findIndex((ids) => ids.includes(name)) : -1;
    const place = schedule < 0 ? [at, index] : ["schedules", schedule, "tools", scheduled[schedule]!.indexOf(name)];
    return {
      name,
      severity: "warning",
      path: place.at(-1) === -1 ? [at] : place,
      message: at === "outputSchema" ? message : `${name}: ${message}`,
    };
  });
}

/** The tree of a text, and where it stops being JSON. */
function treeOf(text: string): { readonly root: Node | undefined; readonly fault: number } {
  const errors: ParseError[] = [];
  try {
    const root = parseTree(text, errors, { disallowComments: true, allowTrailingComma: false });
    const fault = errors.length > 0 ? Math.min(...errors.map(({ offset }) => offset)) : 0;
    return { root: errors.length > 0 ? undefined : root, fault };
  } catch {
    // The text nests too deeply for the stack.
    return { root: undefined, fault: 0 };
  }
}

/** The place of a value, or of the nearest value around it. A missing key has no place. */
function offsetOf(root: Node | undefined, path: ports.AgentTextProblem["path"]): number | undefined {
  if (!root) return undefined;
  for (let length = path.length; length > 0; length--) {
    const node = findNodeAtLocation(root, path.slice(0, length));
    // The key is easier to find than its value.
    if (node) return node.parent?.type === "property" ? node.parent.offset : node.offset;
  }
  return root.offset;
}

function isError({ severity }: ports.AgentTextProblem): boolean {
  return severity === "error";
}

/** The offset at which each line begins. */
function lineStarts(text: string): readonly number[] {
  return [0, ...Array.from(text.matchAll(/\r\n|\n|\r/g), ({ index, 0: end }) => index + end.length)];
}

function placed(lines: readonly number[], offset: number, { severity, path, message }: ports.AgentTextProblem): PlacedProblem {
  const line = lines.findLastIndex((start) => start <= offset);
  return { severity, line: line + 1, column: offset - lines[line]! + 1, path: toJsonPath(path), message };
}

function toJsonPath(path: ports.AgentTextProblem["path"]): string {
  return path.reduce<string>((around, key) => {
    if (typeof key === "number") return `${around}[${key}]`;
    return /^[A-Za-z_$][\w$]*$/.test(key) ? `${around}.${key}` : `${around}[${JSON.stringify(key)}]`;
  }, "$");
}

/**
 * The events of a webhook that a text lets read the files of another user. The runs of an event may read the files of the user who saved it,
 * and callers cannot choose another one (4.3, rule 1). Events that already had that user keep it.
 */
function foreignFileScopes(text: string, before: string | undefined, userId: string | undefined): ports.AgentTextProblem[] {
  const known = scopesOf(before);
  return [...scopesOf(text)].flatMap(([event, owner]): ports.AgentTextProblem[] => {
    if (owner === userId || owner === known.get(event)) return [];
    const path = ["webhooks", "events", event, "fileScope", "userId"];
    return [{ severity: "error", path, message: "Expected your own user id: an event reads the files of the user who saved it" }];
  });
}

/** The user of each event that names one. */
function scopesOf(text: string | undefined): ReadonlyMap<string, unknown> {
  const events = memberOf(memberOf(parse(text), "webhooks"), "events");
  if (!isObject(events)) return new Map();
  const named = Object.entries(events).map(
    ([event, value]) => [event, memberOf(memberOf(value, "fileScope"), "userId")] as const,
  );
  return new Map(named.filter(([, owner]) => owner !== undefined));
}

function memberOf(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function parse(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(withoutByteOrderMark(text));
  } catch {
    return undefined;
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  if (Buffer.byteLength(text) > AGENT_TEXT_BYTES) return undefined;
  try {
    const value = JSON.parse(withoutByteOrderMark(text)) as unknown;
    return isRecord(value) && !hasMoreLevels(value, LEVELS) ? value : undefined;
  } catch {
    return undefined;
  }
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function texts(values: readonly unknown[]): readonly string[] {
  return values.filter((each) => typeof each === "string");
}
