export type Syntax = "json" | "typescript" | "python";

/** Longer values are written in several lines. */
const LINE_LENGTH = 90;
const JSON_WORDS = { true: "true", false: "false", null: "null" };
const WORDS = { json: JSON_WORDS, typescript: JSON_WORDS, python: { true: "True", false: "False", null: "None" } };

/** A JSON value as code. The first line is not indented. */
export function literal(value: unknown, syntax: Syntax, indent: number): string {
  if (typeof value === "boolean" || value === null) return WORDS[syntax][`${value}`];
  // The escapes of JSON mean the same in all languages.
  if (typeof value !== "object") return JSON.stringify(value);
  const items = itemsOf(value, syntax);
  if (items.length === 0) return Array.isArray(value) ? "[]" : "{}";
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const oneLine = items.map(([name, item]) => name + literal(item, syntax, 0)).join(", ");
  const pad = syntax !== "python" && open === "{" ? " " : "";
  if (!oneLine.includes("\n") && oneLine.length + indent <= LINE_LENGTH) return `${open}${pad}${oneLine}${pad}${close}`;
  const step = indent + stepOf(syntax);
  const lines = items.map(([name, item]) => `${" ".repeat(step)}${name}${literal(item, syntax, step)}`);
  const end = syntax === "json" ? "" : ",";
  return `${open}\n${lines.join(",\n")}${end}\n${" ".repeat(indent)}${close}`;
}

/** Spaces of one level. */
export function stepOf(syntax: Syntax): number {
  return syntax === "python" ? 4 : 2;
}

function itemsOf(value: object, syntax: Syntax): readonly (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.map((item: unknown) => ["", item] as const);
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([name, item]) => [
      `${syntax === "typescript" && /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)}: `,
      item,
    ]);
}
