import { nearestWord, type ports } from "@portico/core";
import * as v from "valibot";
import { isRecord } from "@portico/core/contract";
import { type Names, unknown } from "../expressions/check-names.ts";
import { checkShape, checkWith } from "./check-shape.ts";
import { type Compiling, compileExpression, compileValue } from "./compile-template.ts";
import {
  DEFAULT_RETRY_DELAY_MS,
  DEFAULT_RETRY_FACTOR,
  DEFAULT_RETRY_MAX_DELAY_MS,
  DEFINITION_NODES,
  GRAPH_DEPTH,
} from "./definition-limits.ts";
import type { Graph, GraphNode, NodeValue, Need, Retry } from "./definition.ts";
import type { Path } from "./definition-problem.ts";
import { nodeId, type WrittenNode, writtenNode } from "./document-schema.ts";
import type { Expression } from "../expressions/expression.ts";
import { ancestorsOf, orderNodes } from "./order-nodes.ts";
import { toSensitivePaths } from "../secrecy/sensitive-paths.ts";

/** The surroundings of a graph. */
interface Surroundings {
  /** Nodes of the surrounding graphs that end before this graph starts. */
  readonly before: Names["before"];
  /** All nodes of the surrounding graphs. */
  readonly known: ReadonlySet<string>;
  readonly isInside: Names["isInside"];
  readonly hasFailure?: boolean | undefined;
  readonly depth: number;
}

interface Compiled {
  readonly graph: Graph;
  /** For expressions that are evaluated when all nodes of the graph have ended. */
  readonly after: Names;
}

/** Names of properties that all JavaScript objects have. They are not allowed as node ids. */
const TAKEN = new Set(["__proto__", "constructor", "prototype"]);

/** Compile nodes that depend on each other. All problems are reported. If there are any, the result must not be used. */
export function compileGraph(
  written: Readonly<Record<string, unknown>>,
  path: Path,
  around: Surroundings,
  by: Compiling,
): Compiled {
  if (Object.keys(written).length === 0) by.report(by.source.problem(path, "At least one node is required"));
  const drafts = new Map(Object.entries(written).map(([id, value]) => [id, draftOf(id, value, [...path, id], around, by)]));
  const needs = new Map([...drafts].map(([id, { node }]) => [id, (node.needs ?? []).map((need) => toNeed(need).node)]));
  const known = new Set([...around.known, ...drafts.keys()]);
  const ordered = orderNodes(needs);
  if ("circles" in ordered) {
    for (const circle of ordered.circles) {
      const way = [...circle, circle[0]].join(" → ");
      by.report(by.source.problem([...path, circle[0]!, "needs"], `These nodes wait for each other in a circle: ${way}`));
    }
  }
  const compile = (id: string): GraphNode | undefined => {
    // Most nodes name no earlier node. Then the earlier nodes are not computed.
    let ancestors: ReadonlySet<string> | undefined;
    const before = { has: (other: string) => around.before.has(other) || (ancestors ??= ancestorsOf(id, needs)).has(other) };
    const { isInside, hasFailure } = around;
    const names: Names = { before, known, isInside, hasFailure, secrets: by.secrets };
    checkNeeds(id, drafts, [...path, id, "needs"], by);
    return compileNode(drafts.get(id)!, [...path, id], names, around, by);
  };
  const order = "order" in ordered ? ordered.order : [...drafts.keys()];
  const nodes = new Map(order.map((id) => [id, compile(id)!]));
  const before = { has: (id: string) => around.before.has(id) || drafts.has(id) };
  const { isInside, hasFailure } = around;
  return { graph: { nodes }, after: { before, known, isInside, hasFailure, secrets: by.secrets } };
}

/** A node with those of its written keys that are valid. */
interface Draft {
  readonly id: string;
  readonly node: Partial<WrittenNode>;
  readonly rules?: ports.NodeRules | undefined;
  readonly with: Readonly<Record<string, unknown>>;
  readonly cases?: readonly string[] | undefined;
}

function draftOf(id: string, value: unknown, path: Path, around: Surroundings, by: Compiling): Draft {
  const { source, report } = by;
  if (!by.count()) report(source.keyProblem(path, `A definition has at most ${DEFINITION_NODES} nodes`));
  const [fault] = checkShape(nodeId, id);
  if (fault) report(source.keyProblem(path, fault.message));
  else if (TAKEN.has(id)) report(source.keyProblem(path, `A node cannot be called "${id}"`));
  else if (around.known.has(id)) report(source.keyProblem(path, `An enclosing node is also called "${id}"`));

  const problems = checkShape(writtenNode, value);
  for (const { path: below, message, kind } of problems) {
    const at = [...path, ...below];
    report(kind === "unknown-key" ? source.keyProblem(at, message) : source.problem(at, message));
  }
  const wrong = new Set(problems.map((problem) => String(problem.path[0])));
  // There may be more unknown keys than are reported.
  const isUsable = (key: string) => Object.hasOwn(writtenNode.entries, key) && !wrong.has(key);
  const usable = isRecord(value) ? Object.fromEntries(Object.entries(value).filter(([key]) => isUsable(key))) : {};
  const parsed = v.safeParse(v.partial(writtenNode), usable);
  const node = parsed.success ? parsed.output : {};
  const rules = node.type === undefined ? undefined : by.types.get(node.type);
  if (node.type !== undefined && !rules) {
    report(source.problem([...path, "type"], unknownType(node.type, by.types)));
  }
  const given = usable["with"];
  const written = isRecord(given) ? given : {};
  return { id, node, rules, with: written, cases: rules && ask(() => rules.cases?.(written)) };
}

function compileNode(draft: Draft, path: Path, names: Names, around: Surroundings, by: Compiling): GraphNode | undefined {
  const { id, node, rules } = draft;
  const isAlways = node.if === ALWAYS;
  if (isAlways) checkAlways(draft, path, around, by);
  const condition =
    node.if === undefined || isAlways ? undefined : compileExpression(String(node.if), [...path, "if"], names, by);
  const retryIf = node.retry?.if;
  const retried =
    retryIf === undefined ? undefined : compileExpression(retryIf, [...path, "retry", "if"], { ...names, hasError: true }, by);
  if (!rules) return undefined;
  const below = [...path, "with"];
  checkWith(rules, draft.with, below, by);
  return {
    id,
    name: node.name,
    rules,
    needs: (node.needs ?? []).map(toNeed),
    condition,
    ...(isAlways && { isAlways }),
    with: compileWith(rules, draft.with, below, names, around, by),
    cases: draft.cases && new Set(draft.cases),
    retry: { ...toRetry(node.retry), ...(retried && { condition: retried }) },
    timeoutMs: node.timeout,
    onError: node.onError ?? "fail",
    idempotent: node.idempotent,
    sensitive: toSensitivePaths(node.sensitive),
  };
}

/** The `if` of nodes that run whatever the end of their needs is. */
const ALWAYS = "always";

function checkAlways({ rules }: Draft, path: Path, around: Surroundings, by: Compiling): void {
  const report = (message: string): void => by.report(by.source.problem([...path, "if"], message));
  if (around.hasFailure) report("`onFailure` always runs when a run has failed: leave `if` out");
  else if (around.depth > 0) report("`always` is for nodes outside of `map` and `loop`");
  else if (rules?.gate) report("A node that waits for a person cannot run `always`");
}

function compileWith(
  rules: ports.NodeRules,
  written: Readonly<Record<string, unknown>>,
  path: Path,
  names: Names,
  around: Surroundings,
  by: Compiling,
): Record<string, NodeValue> {
  const values = new Map<string, NodeValue>();
  let inner = names;
  const kindOf = (key: string) => (rules.keys && Object.hasOwn(rules.keys, key) ? rules.keys[key] : undefined);
  // Graphs are compiled first, because later expressions name their nodes.
  for (const [key, value] of Object.entries(written)) {
    if (kindOf(key) !== "graph" || !isRecord(value)) continue;
    if (around.depth >= GRAPH_DEPTH) {
      by.report(by.source.keyProblem([...path, key], `\`map\` and \`loop\` may be nested at most ${GRAPH_DEPTH} levels deep`));
      continue;
    }
    const isInside = { map: true, loop: names.isInside.loop || rules.hasPrevious === true };
    const compiled = compileGraph(
      value,
      [...path, key],
      { before: names.before, known: names.known, isInside, hasFailure: names.hasFailure, depth: around.depth + 1 },
      by,
    );
    inner = compiled.after;
    values.set(key, { kind: "graph", graph: compiled.graph });
  }
  for (const [key, value] of Object.entries(written)) {
    const at = [...path, key];
    switch (kindOf(key)) {
      case "graph":
        break;
      case "verbatim":
        values.set(key, { kind: "verbatim", value });
        break;
      case "expression": {
        // The list of a map is evaluated before its nodes start.
        const seen = key === "items" ? names : inner;
        const expression = typeof value === "string" ? compileExpression(value, at, seen, by) : undefined;
        if (expression) values.set(key, { kind: "expression", expression });
        else if (typeof value !== "string") values.set(key, { kind: "template", template: compileValue(value, at, seen, by) });
        break;
      }
      case "expressions": {
        const entries = isRecord(value) ? Object.entries(value) : [];
        const expressions = new Map<string, Expression>();
        for (const [name, text] of entries) {
          if (typeof text !== "string" && typeof text !== "boolean") {
            by.report(by.source.problem([...at, name], "Expected a CEL expression"));
            continue;
          }
          const expression = compileExpression(String(text), [...at, name], names, by);
          if (expression) expressions.set(name, expression);
        }
        values.set(key, { kind: "expressions", expressions });
        break;
      }
      default:
        if (isRequest(rules, key) && isRecord(value)) {
          values.set(key, compileRequest(value, at, { ...names, ...namesOfBody(rules, written) }, { names, by }));
          break;
        }
        values.set(key, { kind: "template", template: compileValue(value, at, names, by) });
    }
  }
  // In the written order, and without a prototype that keys could pollute.
  const ordered = Object.keys(written).flatMap((key) => (values.has(key) ? [[key, values.get(key)!] as const] : []));
  return Object.assign(Object.create(null) as Record<string, NodeValue>, Object.fromEntries(ordered));
}

function checkNeeds(id: string, drafts: ReadonlyMap<string, Draft>, path: Path, by: Compiling): void {
  const seen = new Set<string>();
  for (const [index, text] of (drafts.get(id)!.node.needs ?? []).entries()) {
    const need = toNeed(text);
    const report = (message: string): void => by.report(by.source.problem([...path, index], message));
    const needed = drafts.get(need.node);
    if (seen.has(text)) report(`"${text}" is needed twice`);
    seen.add(text);
    if (!needed)
      report(
        unknown(
          "node in this graph",
          need.node,
          [...drafts.keys()].filter((each) => each !== id),
        ),
      );
    else if (need.node === id) continue;
    else if (need.case !== undefined && needed.rules) {
      if (!needed.cases) report(`The node "${need.node}" is a "${needed.rules.type}": it has no cases`);
      else if (!needed.cases.includes(need.case)) report(unknown(`case of "${need.node}"`, need.case, needed.cases));
    }
  }
}

function unknownType(written: string, types: ReadonlyMap<string, ports.NodeRules>): string {
  const known = [...types.keys()].sort();
  const nearest = nearestWord(written, known);
  const hint = nearest === undefined ? "" : ` Did you mean "${nearest}"?`;
  return `There is no kind of node "${written}".${hint} Known are ${known.join(", ")}`;
}

function toNeed(text: string): Need {
  const dot = text.indexOf(".");
  return dot < 0 ? { node: text } : { node: text.slice(0, dot), case: text.slice(dot + 1) };
}

function toRetry(retry: WrittenNode["retry"]): Retry {
  return {
    attempts: retry?.attempts ?? 1,
    delayMs: retry?.delay ?? DEFAULT_RETRY_DELAY_MS,
    factor: retry?.factor ?? DEFAULT_RETRY_FACTOR,
    maxDelayMs: retry?.maxDelay ?? DEFAULT_RETRY_MAX_DELAY_MS,
  };
}

/** A node type's own code must not stop the loading of a definition. */
function ask<T>(question: () => T): T | undefined {
  try {
    return question();
  } catch {
    return undefined;
  }
}

/** The fields of `gate`. */
const GATE_FIELDS = ["workflowId", "runId", "nodeId", "title", "message", "requestedAt", "expiresAt"];
const LINK_FIELDS = ["link", "linkExpiresAt"];
/** The fields of `callback`. */
const CALLBACK_FIELDS = ["workflowId", "runId", "nodeId", "url", "requestedAt", "expiresAt"];

/** The types of nodes that wait for an answer from outside, and the key of the request that each of them sends before. */
const REQUESTS: Readonly<Record<string, string>> = { human_gate: "notify", callback: "request" };

function isRequest({ type }: ports.NodeRules, key: string): boolean {
  return Object.hasOwn(REQUESTS, type) && REQUESTS[type] === key;
}

/** What only the body of the request can name. */
function namesOfBody({ type }: ports.NodeRules, { links }: Readonly<Record<string, unknown>>): Partial<Names> {
  if (type === "callback") return { callback: CALLBACK_FIELDS };
  const hasLinks = links !== undefined && links !== false;
  return { gate: hasLinks ? [...GATE_FIELDS, ...LINK_FIELDS] : GATE_FIELDS };
}

/** Only the body can name the link or the address, so that it is in nothing that is shown or logged, such as the request's own address. */
function compileRequest(
  { body, ...request }: Readonly<Record<string, unknown>>,
  path: Path,
  inBody: Names,
  { names, by }: { readonly names: Names; readonly by: Compiling },
): NodeValue {
  return {
    kind: "request",
    request: compileValue(request, path, names, by),
    body: body === undefined ? undefined : compileValue(body, [...path, "body"], inBody, by),
  };
}
