import { parseAst } from "rolldown/parseAst";
import { parse as parseSvelte } from "svelte/compiler";

/** A regular expression in a source text. */
export interface SourcePattern {
  /** The literal, or the source of the call of `RegExp`. */
  readonly written: string;
  /** Undefined for a call of `RegExp` whose pattern depends on more than the constants of its file. */
  readonly pattern: string | undefined;
  readonly flags: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** Every regular expression of a module or a Svelte component: literals, and calls of `RegExp` with texts that its constants determine. */
export function patternsOf(file: string, text: string): SourcePattern[] {
  const tree = file.endsWith(".svelte") ? parseSvelte(text, { modern: true }) : parseAst(text, { lang: "ts" });
  const nodes = [...nodesIn(tree)];
  const constants = new Map<string, Node>();
  for (const node of nodes) {
    const { id, init } = node as unknown as { id?: Node; init?: Node };
    if (node.type === "VariableDeclarator" && id?.type === "Identifier" && init) constants.set(String(id["name"]), init);
  }
  return nodes.flatMap((node) => {
    const written = text.slice(node.start, node.end);
    const regex = node["regex"] as { pattern: string; flags: string } | undefined;
    if (node.type === "Literal" && regex) return [{ written, ...regex }];
    if (!/^(?:New|Call)Expression$/.test(node.type) || (node["callee"] as Node)["name"] !== "RegExp") return [];
    const [pattern, flags] = (node["arguments"] as Node[]).map((argument) => textOf(argument, constants));
    return [{ written, pattern, flags: flags ?? "" }];
  });
}

function* nodesIn(value: unknown): Generator<Node> {
  if (typeof value !== "object" || value === null) return;
  if (typeof (value as Node).type === "string") yield value as Node;
  for (const child of Object.values(value)) yield* nodesIn(child);
}

/** The text that an expression of constants means. */
function textOf(node: Node | undefined, constants: ReadonlyMap<string, Node>): string | undefined {
  if (node?.type === "Literal") {
    const regex = node["regex"] as { pattern: string } | undefined;
    return regex?.pattern ?? (typeof node["value"] === "string" ? node["value"] : undefined);
  }
  if (node?.type === "Identifier") return textOf(constants.get(String(node["name"])), constants);
  if (node?.type === "MemberExpression" && (node["property"] as Node)["name"] === "source") {
    return textOf(node["object"] as Node, constants);
  }
  if (node?.type === "TaggedTemplateExpression") return textOf({ ...(node["quasi"] as Node), isRaw: true }, constants);
  if (node?.type !== "TemplateLiteral") return undefined;
  const values = (node["expressions"] as Node[]).map((each) => textOf(each, constants));
  const quasis = (node["quasis"] as { value: { raw: string; cooked: string } }[]).map(({ value }) =>
    node["isRaw"] ? value.raw : value.cooked,
  );
  if (values.includes(undefined)) return undefined;
  return quasis.map((quasi, at) => quasi + (values[at] ?? "")).join("");
}
