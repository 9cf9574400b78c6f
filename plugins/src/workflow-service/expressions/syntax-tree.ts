/** A node of the CEL library's syntax tree. Only the used members are declared, including some that the library's types lack. */
export interface SyntaxNode {
  readonly op: string;
  readonly args: unknown;
  /** Characters of the expression. */
  readonly start: number;
  readonly end: number;
  readonly meta: {
    /** The expansion of a macro such as `all`. */
    readonly alternate?: SyntaxNode;
    readonly macro?: unknown;
    check: Hook;
    evaluate: Hook;
  };
  setMeta(key: "check" | "evaluate", hook: Hook): SyntaxNode;
}

/** `tool` is the library's checker or evaluator. */
type Hook = (tool: any, node: any, context: any) => any;

export interface Comprehension {
  /** Called before each iteration; decides whether it happens. */
  condition?: (soFar: unknown) => boolean;
}

/** The child nodes in the written order. */
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
