import { lexer, Marked, type MarkedToken, type Token } from "marked";
import { mathExtensions, type MathToken, mayHaveMath } from "./read-math.ts";

/** Quotes and lists may nest this deep. Deeper texts would overflow the stack of the parser or of the page. */
const LEVELS = 32;

const withMath = new Marked({ extensions: [...mathExtensions] });

/** The parts of a text in Markdown. A text that nests too deeply is one paragraph, as it was written. */
export function readMarkdown(text: string): readonly Token[] {
  try {
    const tokens = mayHaveMath(text) ? withMath.lexer(text) : lexer(text);
    if (!nestsDeeper(tokens, LEVELS)) return tokens;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return [{ type: "paragraph", raw: text, text, tokens: [{ type: "text", raw: text, text, escaped: false }] }];
}

/** The tokens with the types that they have here. */
export function knownTokens(tokens: readonly Token[]): readonly (MarkedToken | MathToken)[] {
  return tokens as readonly (MarkedToken | MathToken)[];
}

function nestsDeeper(tokens: readonly Token[], most: number): boolean {
  return tokens.some((token) => {
    const inner: readonly Token[] =
      token.type === "list" ? (token["items"] as readonly Token[]) : ((token as { tokens?: Token[] }).tokens ?? []);
    return inner.length > 0 && (most === 0 || nestsDeeper(inner, most - 1));
  });
}
