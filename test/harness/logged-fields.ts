import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Calls of a log: `log.warn(`, `telemetry.log.error(`, `this.#log.info(`. */
const CALL = /\blog\??\.(?:debug|info|warn|error)\(/g;

/** Names of the fields that sources of these folders log as literals, with the file of each. */
export function loggedFields(root: string, folders: readonly string[]): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const file of globSync(
    folders.map((folder) => join(folder, "src/**/*.ts")),
    { cwd: root },
  )) {
    const text = readFileSync(join(root, file), "utf8");
    for (const { 0: call, index } of text.matchAll(CALL)) {
      const [, second = ""] = parts(text, index + call.length);
      if (second.startsWith("{")) for (const name of names(parts(second, 1))) fields.set(name, file);
    }
  }
  return fields;
}

/** The parts between commas, until the bracket closes that is open at the beginning. */
function parts(text: string, from: number): string[] {
  const found: string[] = [];
  let depth = 0;
  let begin = from;
  let quote = "";
  for (let at = from; at < text.length; at++) {
    const character = text[at]!;
    if (quote !== "") {
      if (character === quote && text[at - 1] !== "\\") quote = "";
    } else if (`"'\``.includes(character)) quote = character;
    else if ("([{".includes(character)) depth++;
    else if (")]}".includes(character) && depth-- === 0) return [...found, text.slice(begin, at).trim()];
    else if (character === "," && depth === 0) {
      found.push(text.slice(begin, at).trim());
      begin = at + 1;
    }
  }
  return found;
}

/** Properties of an object literal. Spread properties are not known here. */
function names(properties: readonly string[]): string[] {
  return properties.flatMap((property) => /^(\w+)/.exec(property)?.[1] ?? []);
}
