/** The position at which a text stops being JSON (line and column from 1). For a truncated text, the position after its end. */
export function jsonFault(text: string): { readonly line: number; readonly column: number } {
  const before = text.slice(0, faultAt(text));
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: before.length - lineStart + 1 };
}

const SPACE = /[ \t\r\n]*/y;
const SCALAR =
  /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)/y;
const KEY = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

/** Walks the text like a parser, with its own stack, because JavaScript engines report the position of only some errors. */
function faultAt(text: string): number {
  const open: ("{" | "[")[] = [];
  let at = 0;
  let wants: "value" | "first" | "key" | "after" = "value";

  const take = (token: RegExp): boolean => {
    token.lastIndex = at;
    if (!token.test(text)) return false;
    at = token.lastIndex;
    return true;
  };
  const takeKey = (): boolean => take(KEY) && take(SPACE) && text[at] === ":" && ++at > 0;

  for (;;) {
    take(SPACE);
    const character = text[at];
    const isClosing = character === (open.at(-1) === "{" ? "}" : "]") && open.length > 0;
    if (isClosing && (wants === "first" || wants === "after")) {
      open.pop();
      at++;
      wants = "after";
    } else if (wants === "after") {
      if (character !== "," || open.length === 0) return at;
      at++;
      wants = open.at(-1) === "{" ? "key" : "value";
    } else if (wants === "key" || (wants === "first" && open.at(-1) === "{")) {
      if (!takeKey()) return at;
      wants = "value";
    } else if (character === "{" || character === "[") {
      open.push(character);
      at++;
      wants = "first";
    } else if (take(SCALAR)) {
      wants = "after";
    } else {
      return at;
    }
  }
}
