/** A node of the tree that the CEL library parses into, as far as it is used here: also what its own types leave out. */
export interface SyntaxNode {
  readonly op: string;
  readonly args: unknown;
  /** Characters of the expression. */
  readonly start: number;
  readonly end: number;
  readonly meta: {
    /** What a macro such as `all` stands for. */
    readonly alternate?: SyntaxNode;
    readonly macro?: unknown;
    check: Hook;
    evaluate: Hook;
  };
  setMeta(key: "check" | "evaluate", hook: Hook): SyntaxNode;
}

/** `tool` is the library's checker or evaluator. */
export type Hook = (tool: any, node: any, context: any) => any;

export interface Comprehension {
  /** Asked before each turn whether there shall be one. */
  condition?: (soFar: unknown) => boolean;
}

/** The nodes right below one, in the order in which they are written. */
export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  return nodesIn(node.args);
}

function nodesIn(args: unknown): SyntaxNode[] {
  if (Array.isArray(args)) return args.flatMap(nodesIn);
  return isSyntaxNode(args) ? [args] : [];
}

export function isSyntaxNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "op" in value && "args" in value && "start" in value;
}
