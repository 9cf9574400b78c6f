import { nearestWord } from "@portico/core";
import { LOST_KEYS, lostKey } from "./bound-cost.ts";
import { compilePattern, ROOT_NAMES } from "./expression-language.ts";
import { NAMESPACES } from "./functions/function-library.ts";
import { Refused } from "./refused.ts";
import { hintFor } from "./slips.ts";
import { childrenOf, isSyntaxNode, type SyntaxNode } from "./syntax-tree.ts";

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
  /** Whether it can name the `failure` of the run. */
  readonly hasFailure?: boolean | undefined;
}

export interface NameProblem {
  /** Character of the expression. */
  readonly offset: number;
  readonly message: string;
}

const RUN_FIELDS = ["id", "workflowId", "startedAt"];
const FAILURE_FIELDS = ["runId", "workflowId", "nodeId", "code", "message", "startedAt", "endedAt"];
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
  walk(tree, { names, bound: new Set(), tell: (offset, message) => void problems.push({ offset, message }) });
  return problems;
}

interface Walk {
  readonly names: Names;
  /** Variables of the surrounding comprehensions. */
  readonly bound: ReadonlySet<string>;
  tell(offset: number, message: string): void;
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

function checkKeys(map: SyntaxNode, { tell }: Walk): void {
  for (const [key] of map.args as [SyntaxNode, SyntaxNode][]) {
    if (key.op === "value" && LOST_KEYS.has(key.args)) tell(key.start, lostKey(key.args));
  }
}

function checkPattern(pattern: SyntaxNode, { tell }: Walk): void {
  if (typeof pattern.args !== "string") return;
  try {
    compilePattern(pattern.args);
  } catch (cause) {
    if (!(cause instanceof Refused)) throw cause;
    tell(pattern.start, cause.message);
  }
}

/** Every `root.a["b"]…` of a parsed expression, including those inside brackets. */
export function chainsOf(tree: SyntaxNode): Chain[] {
  const chain = chainOf(tree);
  const below = chain ? chain.inner : childrenOf(tree);
  return [...(chain ? [chain] : []), ...below.flatMap(chainsOf)];
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
  const { names, tell } = at;
  switch (root) {
    case "parameters":
      return;
    case "item":
    case "index":
      if (!names.isInside.map && !names.isInside.loop) tell(start, `\`${root}\` is known inside \`map\` and \`loop\` only`);
      return;
    case "previous":
      if (!names.isInside.loop) tell(start, "`previous` is known inside `loop` only");
      return;
    case "gate":
      if (!names.gate) tell(start, "`gate` is known in the `body` of a gate's `notify` only");
      else if (first?.name === "link" && !names.gate.includes("link")) tell(first.offset, "`gate.link` needs `links: true`");
      else if (first && !names.gate.includes(first.name)) tell(first.offset, unknown("field of `gate`", first.name, names.gate));
      return;
    case "failure":
      if (!names.hasFailure) tell(start, "`failure` is known in `onFailure` only");
      else if (first && !FAILURE_FIELDS.includes(first.name))
        tell(first.offset, unknown("field of `failure`", first.name, FAILURE_FIELDS));
      return;
    case "run":
      if (!first) tell(computed?.start ?? start, `Name what of the run: ${listed(RUN_FIELDS.map((each) => `run.${each}`))}`);
      else if (!RUN_FIELDS.includes(first.name)) tell(first.offset, unknown("field of `run`", first.name, RUN_FIELDS));
      return;
    case "secrets":
      if (!first) tell(computed?.start ?? start, "Name the secret: `secrets.NAME`; computed names of secrets are refused");
      else if (!names.secrets.has(first.name)) tell(first.offset, unknown("secret", first.name, names.secrets));
      return;
    case "nodes":
      if (!first) return tell(computed?.start ?? start, "Name the node: `nodes.ID`; computed names of nodes are refused");
      if (!names.known.has(first.name)) return tell(first.offset, unknownNode(first.name, names.known));
      if (!names.before.has(first.name)) {
        return tell(first.offset, `The node "${first.name}" is not before this one: add it to \`needs\``);
      }
      if (second && !NODE_FIELDS.includes(second.name)) tell(second.offset, unknown("field of a node", second.name, NODE_FIELDS));
      return;
    default:
      if (!LANGUAGE_NAMES.has(root)) tell(start, `${unknown("name", root, ROOT_NAMES)}${hintFor(`${root}.`)}`);
  }
}

/** CEL reads `nodes.a-b` as a difference. */
function unknownNode(written: string, known: Iterable<string>): string {
  const hyphened = [...known].find((id) => id.startsWith(`${written}-`));
  if (hyphened === undefined) return unknown("node", written, known);
  return `There is no node "${written}": an id with a hyphen is written \`nodes['${hyphened}']\``;
}

/** A message about an unknown name. It suggests the most similar known name, or lists the known names if there are few. */
export function unknown(what: string, written: string, known: Iterable<string>): string {
  const all = [...known];
  const nearest = nearestWord(written, all);
  if (nearest !== undefined) return `There is no ${what} "${written}": did you mean "${nearest}"?`;
  const few = all.length > 0 && all.length <= 20 ? `: there is ${listed(all)}` : "";
  return `There is no ${what} "${written}"${few}`;
}

function listed(words: readonly string[]): string {
  return words.join(", ");
}
