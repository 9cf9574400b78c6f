import { posix } from "node:path";

/** One name that a module exports. */
export interface ExportedName {
  readonly name: string;
  /** Where it is declared: the file and the line, counted from 1; the line of the export where no declaration is found. */
  readonly file: string;
  readonly line: number;
  /** Whether a doc comment stands before the declaration. */
  readonly isDocumented: boolean;
}

const DECLARATION =
  /^export (?:default )?(?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/;
const RE_EXPORT = /^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm;
const STAR = /^export \* (?:as (\w+) )?from "([^"]+)";/gm;

/**
 * The names that a module exports, its own and those of other files that it passes on, in sources as this repository formats them. `read` gives the
 * text of a file. What another package declares is not followed.
 */
export function exportedNames(file: string, read: (file: string) => string): ExportedName[] {
  const text = read(file);
  const lines = text.split("\n");
  const own = lines.flatMap((line, at): ExportedName[] => {
    const name = DECLARATION.exec(line)?.[1];
    return name === undefined ? [] : [{ name, file, line: at + 1, isDocumented: isDocumented(lines, at) }];
  });
  const lineAt = (index: number) => text.slice(0, index).split("\n").length;
  const passedOn = [...text.matchAll(RE_EXPORT)].flatMap(({ 1: list = "", 2: target = "", index }) => {
    const names = namesIn(list);
    if (!target.startsWith(".")) return [];
    const there = exportedNames(pathOf(file, target), read);
    return names.map(({ inner, outer }): ExportedName => {
      const found = there.find(({ name }) => name === inner);
      return found ? { ...found, name: outer } : { name: outer, file, line: lineAt(index), isDocumented: false };
    });
  });
  const all = [...text.matchAll(STAR)].flatMap(({ 1: space, 2: target = "" }) => {
    const there = exportedNames(pathOf(file, target), read);
    return space === undefined ? there : there.map((each) => ({ ...each, name: `${space}.${each.name}` }));
  });
  // An overloaded function is one name, and its first signature has the comment.
  const seen = new Map<string, ExportedName>();
  for (const each of [...own, ...passedOn, ...all]) {
    const known = seen.get(each.name);
    if (!known?.isDocumented) seen.set(each.name, known && !each.isDocumented ? known : each);
  }
  return [...seen.values()];
}

function isDocumented(lines: readonly string[], at: number): boolean {
  let before = at - 1;
  // Notes for tools may stand in between.
  while (lines[before]?.startsWith("// oxlint-")) before--;
  return lines[before]?.trimEnd().endsWith("*/") ?? false;
}

function namesIn(list: string): { readonly inner: string; readonly outer: string }[] {
  return list
    .split(",")
    .map((each) => each.trim().replace(/^type /, ""))
    .filter((each) => each !== "")
    .map((each) => {
      const [inner = "", outer = inner] = each.split(" as ");
      return { inner, outer };
    });
}

function pathOf(file: string, target: string): string {
  return posix.join(posix.dirname(file), target);
}
