import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";

/** One selector of a PromQL expression: its metric, and the labels that it compares. */
export interface Selector {
  readonly metric: string;
  readonly labels: readonly { readonly name: string; readonly operator: string; readonly value: string }[];
}

/** The metrics that a PromQL expression reads, and the labels by which it groups. Throws for an invalid expression. */
export interface ReadExpression {
  readonly selectors: readonly Selector[];
  /** Labels of `by`, `without`, `on` and `ignoring`. */
  readonly grouped: readonly string[];
}

/** Grafana's own variables are not PromQL. */
export function readExpression(text: string): ReadExpression {
  const expression = text.replaceAll("$__rate_interval", "5m");
  const selectors: Selector[] = [];
  const grouped: string[] = [];
  const write = (node: SyntaxNode) => expression.slice(node.from, node.to);
  parser.parse(expression).iterate({
    enter({ node, type }) {
      if (type.isError) throw new Error(`Invalid PromQL at ${node.from}: ${expression}`);
      if (type.name === "VectorSelector") {
        selectors.push({
          metric: write(node.getChild("Identifier")!),
          labels: all(node, "UnquotedLabelMatcher").map((matcher) => ({
            name: write(matcher.getChild("LabelName")!),
            operator: write(matcher.getChild("MatchOp")!),
            value: JSON.parse(write(matcher.getChild("StringLiteral")!)) as string,
          })),
        });
      }
      if (type.name === "GroupingLabels") for (const label of all(node, "LabelName")) grouped.push(write(label));
    },
  });
  return { selectors, grouped };
}

function all(node: SyntaxNode, name: string): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  node.cursor().iterate((each) => {
    if (each.name === name) found.push(each.node);
  });
  return found;
}
