import { nearestWord } from "@portico/core";
import { LOST_KEYS, lostKey, compilePattern, ROOT_NAMES } from "./expression-language.ts";
import { NAMESPACES } from "./function-library.ts";
import { Refused } from "./cel-value.ts";
import { childrenOf, isSyntaxNode, type SyntaxNode } from "./syntax-tree.ts";
import type { ExpressionScope } from "./expression.ts";
import { setOwn } from "./set-own.ts";

/** The names that an expression may use at its place. */
export interface Names {
  /** Nodes that end before the expression is evaluated. */
  readonly before: Pick<ReadonlySet<string>, "has">;
  /** Nodes of its own graph and of the surrounding graphs. */
  readonly known: ReadonlySet<string>;
  readonly isInside: { readonly map: boolean; readonly loop: boolean };
  readonly secrets: ReadonlySet<string>;
  /** The fields of `gate`, where an expression can name it. */
  readonly gate?: readonly string[] | undefined;
  /** The fields of `callback`, where an expression can name it. */
  readonly callback?: readonly string[] | undefined;
  /** Whether it can name the `failure` of the run. */
  readonly hasFailure?: boolean | undefined;
  /** Whether it can name the `error` of an attempt. */
  readonly hasError?: boolean | undefined;
  /** Whether the run does not exist yet: it can name parameters only. */
  readonly isBeforeRun?: boolean | undefined;
}

export interface NameProblem {
  /** Character of the expression. */
  readonly offset: number;
  readonly message: string;
}

const RUN_FIELDS = ["id", "workflowId", "startedAt"];

const FAILURE_FIELDS = ["runId", "workflowId", "nodeId", "code", "message", "startedAt", "endedAt"];

const ERROR_FIELDS = ["code", "message", "status", "body", "bodyTruncated"];

const NODE_FIELDS = ["output", "status", "error"];

const BINDING = new Set(["all", "exists", "exists_one", "map", "filter", "sortBy"]);

/** Names that the language defines: types, for `type(x) == int`, and namespaces. */
const LANGUAGE_NAMES = new Set([
  ...["bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null_type", "dyn"],
  ...["google", "cel", "optional", ...NAMESPACES],
]);

/** Every name of a parsed expression that is unknown at its place. */
export function checkNames(tree: SyntaxNode, names: Names): NameProblem[] {
  const problems: NameProblem[] = [];
  walk(tree, { names, bound: new Set(), report: (offset, message) => void problems.push({ offset, message }) });
  return problems;
}

/** The part of a scope that an expression reads. Names of nodes and secrets are never computed, so only the named ones are taken. */
export function readScope(tree: SyntaxNode, scope: ExpressionScope): ExpressionScope {
  const chains = chainsOf(tree);
  const roots = new Set(chains.map(({ root }) => root));
  const namedBelow = (wanted: string) => chains.flatMap(({ root, keys }) => (root === wanted ? keys.slice(0, 1) : []));
  return {
    parameters: roots.has("parameters") ? scope.parameters : null,
    nodes: pick(scope.nodes, namedBelow("nodes")),
    run: scope.run,
    secrets: pick(scope.secrets, namedBelow("secrets")),
    item: roots.has("item") ? scope.item : null,
    index: scope.index,
    previous: roots.has("previous") ? scope.previous : null,
    gate: roots.has("gate") ? scope.gate : null,
    callback: roots.has("callback") ? scope.callback : null,
    failure: roots.has("failure") ? scope.failure : null,
    error: roots.has("error") ? scope.error : null,
  };
}

/** Every `root.a["b"]…` of a parsed expression, including those inside brackets. */
export function chainsOf(tree: SyntaxNode): Chain[] {
  const chain = chainOf(tree);
  const below = chain ? chain.inner : childrenOf(tree);
  return [...(chain ? [chain] : []), ...below.flatMap(chainsOf)];
}

/** A message about an unknown name. It suggests the most similar known name, or lists the known names if there are few. */
export function unknown(what: string, written: string, known: Iterable<string>): string {
  const all = [...known];
  const nearest = nearestWord(written, all);
  if (nearest !== undefined) return `There is no ${what} "${written}": did you mean "${nearest}"?`;
  const few = all.length > 0 && all.length <= 20 ? `: there is ${listed(all)}` : "";
  return `There is no ${what} "${written}"${few}`;
}

/** Something that authors write because other languages have it, and what to write instead. */
interface Slip {
  readonly written: RegExp;
  readonly instead: string;
}

const SLIPS: readonly Slip[] = [
  { written: /\?\?/, instead: "a default is `has(parameters.a) ? parameters.a : 'b'`" },
  { written: /\?\.[A-Za-z_]/, instead: "ask first: `has(parameters.a) ? parameters.a.b : null`" },
  { written: /===|!==/, instead: "write `==` or `!=`" },
  { written: /=>/, instead: "write the name of the element first: `LIST.map(each, each.name)`" },
  { written: /`/, instead: "join texts with `+`, or use `'%s: %d'.format([a, b])`" },
  { written: /\btypeof\b/, instead: "write `type(VALUE) == string`" },
  { written: /\.(?:toUpperCase|upper|uppercase|toUpper)\(/, instead: "write `TEXT.upperAscii()`" },
  { written: /\.(?:toLowerCase|lower|lowercase|toLower)\(/, instead: "write `TEXT.lowerAscii()`" },
  { written: /\.includes\(/, instead: "write `TEXT.contains(PART)`, or `VALUE in LIST`" },
  { written: /\.(?:length|count)\b/, instead: "write `size(VALUE)`" },
  { written: /\.replaceAll\(/, instead: "write `TEXT.replace(OLD, NEW)`, which replaces all" },
  { written: /\.some\(/, instead: "write `LIST.exists(each, TEST)`" },
  { written: /\.every\(/, instead: "write `LIST.all(each, TEST)`" },
  { written: /\.find\(/, instead: "write `LIST.filter(each, TEST)[0]`" },
  { written: /\.(?:toString\(|toFixed\()|\b(?:String|str)\(/, instead: "write `string(VALUE)`, or `'%.2f'.format([VALUE])`" },
  { written: /\b(?:Number|parseInt|parseFloat|number|float)\(/, instead: "write `int(VALUE)` or `double(VALUE)`" },
  { written: /\bJSON\./, instead: "write `json.encode(VALUE)` or `json.decode(TEXT)`" },
  { written: /\bMath\./, instead: "write `math.round(NUMBER)`, `math.greatest(LIST)` and so on" },
  { written: /\bObject\.|\bkeys\(/, instead: "the keys of an object are `OBJECT.map(key, key)`" },
  { written: /\bencodeURIComponent\(/, instead: "write `url.encode(TEXT)`" },
  {
    written: /\b(?:now|today)\(|\bDate\b/,
    instead: "no function reads the clock: the start of the run is `timestamp(run.startedAt)`",
  },
  {
    written: /\b(?:uuid|random|randomUUID)\(/,
    instead: "no function reads chance: an id that is unique for the run is `run.id`",
  },
  {
    written: /^Logical operator requires/,
    instead: "`||` and `&&` take true and false: a default is `has(parameters.a) ? parameters.a : 'b'`",
  },
];

/** What to write instead, for an expression that cannot be used; "" if it has none of the usual slips. `fault`: what the library says. */
export function hintFor(source: string, fault = ""): string {
  const slip = SLIPS.find(({ written }) => written.test(source) || written.test(fault));
  return slip ? `; ${slip.instead}` : "";
}

interface Walk {
  readonly names: Names;
  /** Variables of the surrounding comprehensions. */
  readonly bound: ReadonlySet<string>;
  report(offset: number, message: string): void;
}

function walk(node: SyntaxNode, at: Walk): void {
  const chain = chainOf(node);
  if (chain && !at.bound.has(chain.root)) return walkChain(chain, at);
  if (node.op === "rcall") return walkMethod(node, at);
  if (node.op === "map") checkKeys(node, at);
  for (const child of childrenOf(node)) walk(child, at);
}

function walkMethod(node: SyntaxNode, at: Walk): void {
  const [method, receiver, args] = node.args as [string, SyntaxNode, SyntaxNode[]];
  const [first, ...others] = args;
  const isBind = method === "bind" && receiver.op === "id" && receiver.args === "cel";
  const inside = first?.op === "id" ? { ...at, bound: new Set([...at.bound, first.args as string]) } : at;
  if (isBind && others.length === 2) {
    walk(others[0]!, at);
    return walk(others[1]!, inside);
  }
  walk(receiver, at);
  if (first?.op === "id" && BINDING.has(method) && others.length > 0) return others.forEach((each) => walk(each, inside));
  if (method === "matches" && first?.op === "value") checkPattern(first, at);
  for (const each of args) walk(each, at);
}

function checkKeys(map: SyntaxNode, { report }: Walk): void {
  for (const [key] of map.args as [SyntaxNode, SyntaxNode][]) {
    if (key.op === "value" && LOST_KEYS.has(key.args)) report(key.start, lostKey(key.args));
  }
}

function checkPattern(pattern: SyntaxNode, { report }: Walk): void {
  if (typeof pattern.args !== "string") return;
  try {
    compilePattern(pattern.args);
  } catch (cause) {
    if (!(cause instanceof Refused)) throw cause;
    report(pattern.start, cause.message);
  }
}

/** `root.a["b"]…`, up to the first key that is computed. */
export interface Chain {
  readonly root: string;
  readonly start: number;
  readonly keys: readonly { readonly name: string; readonly offset: number }[];
  /** The first computed key. */
  readonly computed?: SyntaxNode | undefined;
  /** Expressions in brackets anywhere in it. */
  readonly inner: readonly SyntaxNode[];
}

function chainOf(node: SyntaxNode): Chain | undefined {
  const links: SyntaxNode[] = [];
  let root = node;
  while (root.op === "." || root.op === "[]") {
    links.unshift(root);
    root = (root.args as [SyntaxNode])[0];
  }
  if (root.op !== "id") return undefined;
  const keys: { name: string; offset: number }[] = [];
  const inner: SyntaxNode[] = [];
  let computed: SyntaxNode | undefined;
  for (const link of links) {
    const [, key] = link.args as [SyntaxNode, string | SyntaxNode];
    const literal = isSyntaxNode(key) ? key.args : key;
    if (isSyntaxNode(key)) inner.push(key);
    if (computed) continue;
    if (typeof literal === "string" && (!isSyntaxNode(key) || key.op === "value")) {
      keys.push({ name: literal, offset: isSyntaxNode(key) ? key.start : link.end - literal.length });
    } else if (isSyntaxNode(key)) computed = key;
  }
  return { root: root.args as string, start: root.start, keys, computed, inner };
}

function walkChain(chain: Chain, at: Walk): void {
  for (const each of chain.inner) walk(each, at);
  const { root, start, keys, computed } = chain;
  const [first, second] = keys;
  const { names, report } = at;
  if (names.isBeforeRun && root !== "parameters" && (ROOT_NAMES as readonly string[]).includes(root))
    return report(start, `\`${root}\` is not known before the run: name \`parameters\` only`);
  switch (root) {
    case "parameters":
      return;
    case "item":
    case "index":
      if (!names.isInside.map && !names.isInside.loop) report(start, `\`${root}\` is known inside \`map\` and \`loop\` only`);
      return;
    case "previous":
      if (!names.isInside.loop) report(start, "`previous` is known inside `loop` only");
      return;
    case "gate":
      if (!names.gate) report(start, "`gate` is known in the `body` of a gate's `notify` only");
      else if (first?.name === "link" && !names.gate.includes("link")) report(first.offset, "`gate.link` needs `links: true`");
      else if (first && !names.gate.includes(first.name))
        report(first.offset, unknown("field of `gate`", first.name, names.gate));
      return;
    case "callback":
      if (!names.callback) report(start, "`callback` is known in the `body` of a callback's `request` only");
      else if (first && !names.callback.includes(first.name))
        report(first.offset, unknown("field of `callback`", first.name, names.callback));
      return;
    case "failure":
      if (!names.hasFailure) report(start, "`failure` is known in `onFailure` only");
      else if (first && !FAILURE_FIELDS.includes(first.name))
        report(first.offset, unknown("field of `failure`", first.name, FAILURE_FIELDS));
      return;
    case "error":
      if (!names.hasError) report(start, "`error` is known in `retry.if` only");
      else if (first && !ERROR_FIELDS.includes(first.name))
        report(first.offset, unknown("field of `error`", first.name, ERROR_FIELDS));
      return;
    case "run":
      if (!first) report(computed?.start ?? start, `Name what of the run: ${listed(RUN_FIELDS.map((each) => `run.${each}`))}`);
      else if (!RUN_FIELDS.includes(first.name)) report(first.offset, unknown("field of `run`", first.name, RUN_FIELDS));
      return;
    case "secrets":
      if (!first) report(computed?.start ?? start, "Name the secret: `secrets.NAME`; computed names of secrets are refused");
      else if (!names.secrets.has(first.name)) report(first.offset, unknown("secret", first.name, names.secrets));
      return;
    case "nodes":
      if (!first) return report(computed?.start ?? start, "Name the node: `nodes.ID`; computed names of nodes are refused");
      if (!names.known.has(first.name)) return report(first.offset, unknownNode(first.name, names.known));
      if (!names.before.has(first.name)) {
        return report(first.offset, `The node "${first.name}" is not before this one: add it to \`needs\``);
      }
      if (second && !NODE_FIELDS.includes(second.name))
        report(second.offset, unknown("field of a node", second.name, NODE_FIELDS));
      return;
    default:
      if (!LANGUAGE_NAMES.has(root)) report(start, `${unknown("name", root, ROOT_NAMES)}${hintFor(`${root}.`)}`);
  }
}

/** CEL reads `nodes.a-b` as a difference. */
function unknownNode(written: string, known: Iterable<string>): string {
  const hyphened = [...known].find((id) => id.startsWith(`${written}-`));
  if (hyphened === undefined) return unknown("node", written, known);
  return `There is no node "${written}": an id with a hyphen is written \`nodes['${hyphened}']\``;
}

function listed(words: readonly string[]): string {
  return words.join(", ");
}

function pick<T>(values: Readonly<Record<string, T>>, keys: readonly { readonly name: string }[]): Record<string, T> {
  const picked: Record<string, T> = {};
  for (const { name } of keys) if (Object.hasOwn(values, name)) setOwn(picked, name, values[name]);
  return picked;
}
