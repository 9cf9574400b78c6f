/** A node of the syntax tree that Babel made, as far as this needs it. */
interface Path {
  readonly node: { readonly type: string };
  readonly parentPath: Path | null;
}

const TEXTS = new Set(["StringLiteral", "TemplateLiteral"]);

/** Leaves the sentences of errors alone: tests check the kind of an error, and a sentence where a user reads it. */
const errorWords = {
  shouldIgnore({ node, parentPath }: Path): string | undefined {
    const isThrown = parentPath?.node.type === "NewExpression" && TEXTS.has(node.type);
    return isThrown ? "The sentence of an error" : undefined;
  },
};

/** What StrykerJS loads: see its documentation of ignore plugins. */
export const strykerPlugins = [{ kind: "Ignore", name: "error-words", value: errorWords }];
