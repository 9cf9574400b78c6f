import { EXECUTED_IN_CASES } from "@portico/plugins/workflow-service/client";
import { isMap, isSeq, parseDocument } from "yaml";
import { PageFailure } from "../../../api/page-failure.ts";
import type { DefinitionNode } from "../workflow-calls.ts";

export const NO_CASES = `# Cases as in a file of "portico workflow test". Nothing is called: nodes get the answers of the case.
cases: []
`;

/** The text with one more case, which expects a completed run. Throws PageFailure for a text that has no place for it. */
export function withCase(
  text: string,
  given: {
    readonly name: string;
    readonly parameters: Readonly<Record<string, unknown>>;
    readonly nodes: readonly DefinitionNode[];
    /** The text of the definition. */
    readonly definition: string;
  },
): string {
  const { name, parameters, nodes } = given;
  const written = readable(given.definition);
  const gates = nodes.filter(({ type }) => type === "human_gate");
  const callbacks = nodes.filter(({ type }) => type === "callback");
  const waiting = new Set([...gates, ...callbacks]);
  const answered = nodes.filter((node) => !EXECUTED_IN_CASES.has(node.type) && !waiting.has(node));
  const byId = (some: readonly DefinitionNode[], answer: (node: DefinitionNode) => unknown) =>
    Object.fromEntries(some.map((node) => [node.id, answer(node)]));
  const settings = ({ id }: DefinitionNode) => settingsOf(written, id.split("."));
  const answerOf = (node: DefinitionNode) => ({ output: sampleAnswer(node.type, settings(node)) });
  return withWritten(text, {
    name,
    ...(Object.keys(parameters).length > 0 && { parameters }),
    ...(answered.length > 0 && { nodes: byId(answered, answerOf) }),
    ...(gates.length > 0 && { gates: byId(gates, (node) => sampleDecision(settings(node))) }),
    ...(callbacks.length > 0 && { callbacks: byId(callbacks, (node) => ({ event: sampleEvent(settings(node)) })) }),
    expect: { status: "completed" },
  });
}

/** The text with one more case. Throws PageFailure for a text that has no place for it. */
export function withWritten(text: string, written: Readonly<Record<string, unknown>>): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) throw new PageFailure("The cases are not valid YAML. Correct them first");
  if (!document.has("cases")) document.set("cases", []);
  const cases = document.get("cases");
  if (!isMap(document.contents) || !isSeq(cases)) throw new PageFailure("The key cases must be a list. Correct it first");
  cases.flow = false;
  cases.add(document.createNode(written));
  return document.toString({ lineWidth: 100 });
}

/** How many cases a text has, as far as it can be read. */
export function countCases(text: string): number {
  const cases = parseDocument(text, { logLevel: "silent" }).get("cases");
  return isSeq(cases) ? cases.items.length : 0;
}

/** Whether a text has a case of this name, as far as it can be read. */
export function hasCase(text: string, name: string): boolean {
  const { cases } = membersOf(readable(text));
  return Array.isArray(cases) && cases.some((each) => membersOf(each)["name"] === name);
}

/** What each case expects, by its name. Empty for texts that cannot be read. */
export function expectations(text: string): ReadonlyMap<string, Expectation> {
  const value: unknown = readable(text);
  const cases: unknown = (value as { readonly cases?: unknown } | null | undefined)?.cases;
  if (!Array.isArray(cases)) return new Map();
  return new Map(
    (cases as readonly { readonly name?: unknown; readonly expect?: Expectation }[]).flatMap((each) =>
      typeof each?.name === "string" && each.expect ? [[each.name, each.expect] as const] : [],
    ),
  );
}

export interface Expectation {
  readonly status?: unknown;
  readonly outputs?: unknown;
  readonly error?: Readonly<Record<string, unknown>>;
  readonly nodes?: Readonly<Record<string, unknown>>;
}

/** `with` of a node: `pages.short` is in a value of `with` of the node `pages`. */
function settingsOf(definition: unknown, ids: readonly string[]): unknown {
  let graphs: readonly unknown[] = [membersOf(definition)["nodes"]];
  let settings: unknown;
  for (const id of ids) {
    const node = graphs.map((graph) => membersOf(graph)[id]).find((each) => each !== undefined);
    settings = membersOf(node)["with"];
    graphs = Object.values(membersOf(settings));
  }
  return settings;
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function readable(text: string): unknown {
  try {
    return parseDocument(text, { logLevel: "silent" }).toJS({ maxAliasCount: 100 });
  } catch {
    return undefined;
  }
}

/** Answers with which runs often go on, by kind of node. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  agent: { text: "" },
  http: { status: 200, headers: {}, body: {} },
  model: { text: "" },
};
const DEPTH = 5;

/** An answer of a node for a case, which the author corrects. `settings`: its `with`. */
function sampleAnswer(type: string, settings: unknown): unknown {
  const { output } = (settings ?? {}) as { readonly output?: unknown };
  if (type === "model" && isRecord(output)) return sampleOf(output);
  return ANSWERS[type] ?? {};
}

/** A decision of a gate for a case. */
function sampleDecision(settings: unknown): unknown {
  const { form } = (settings ?? {}) as { readonly form?: unknown };
  return { decision: "approve", ...(isRecord(form) && { values: sampleOf(form) }) };
}

/** An event of a callback for a case. */
function sampleEvent(settings: unknown): unknown {
  const { schema } = (settings ?? {}) as { readonly schema?: unknown };
  return isRecord(schema) ? sampleOf(schema) : {};
}

/** A value that simple schemas allow. */
function sampleOf(schema: Readonly<Record<string, unknown>>, depth = 0): unknown {
  const { type, const: only, enum: choices, default: preset, properties, required, minimum } = schema;
  const [given] = [preset, only, Array.isArray(choices) ? (choices[0] as unknown) : undefined].filter(
    (each) => each !== undefined,
  );
  if (given !== undefined) return given;
  if (isRecord(properties) && depth < DEPTH) {
    const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
    return Object.fromEntries(
      names.map((name) => {
        const property = properties[name];
        return [name, isRecord(property) ? sampleOf(property, depth + 1) : ""];
      }),
    );
  }
  if (type === "number" || type === "integer") return typeof minimum === "number" ? minimum : 0;
  if (type === "boolean") return false;
  if (type === "array") return [];
  return type === "object" ? {} : "";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
