import { parseJson } from "@portico/core/client";
import { isRecord } from "@portico/core/contract";
import type { JsonSchema } from "../definition/definition.ts";
import { setOwn } from "../expressions/set-own.ts";
import type { SchemaFault } from "../definition/schema-check.ts";

/** One property of an object schema as a control of a page. Properties without a suitable control are written as JSON. */
export interface FormField {
  /** The property. `""` if the whole value is written as one JSON text. */
  readonly name: string;
  readonly title: string;
  readonly hint: string | undefined;
  readonly isRequired: boolean;
  readonly control:
    | { readonly kind: "text"; readonly isLong: boolean }
    | { readonly kind: "number"; readonly step: "1" | "any" }
    | { readonly kind: "choice"; readonly choices: readonly unknown[] }
    | { readonly kind: "json" };
  /** The text that the control has at first. */
  readonly draft: string;
}

/** The values of a form, or what is wrong with the text of a field. */
export type ReadValues = { readonly values: Readonly<Record<string, unknown>> } | { readonly faults: readonly SchemaFault[] };

/** Longer texts get a field with several lines. */
const LINE_LENGTH = 200;

/** The fields for an object schema, in the schema's order. A schema without properties becomes a single field. */
export function formFields(schema: JsonSchema): readonly FormField[] {
  const properties = isRecord(schema["properties"]) ? Object.entries(schema["properties"]) : [];
  if (properties.length === 0) {
    const hint = "A JSON object; you can leave it unchanged";
    return [{ name: "", title: "Values", hint, isRequired: false, control: { kind: "json" }, draft: "{}" }];
  }
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  return properties.map(([name, given]) => {
    const property = isRecord(given) ? given : {};
    const { title, description, default: preset } = property;
    const control = controlOf(property);
    const shape = control.kind === "json" ? `JSON${shapeOf(property)}` : undefined;
    return {
      name,
      title: typeof title === "string" && title !== "" ? title : name,
      hint: [description, shape].filter((part) => typeof part === "string").join(" · ") || undefined,
      isRequired: required.has(name),
      control,
      draft: preset === undefined ? "" : toDraft(preset, control),
    };
  });
}

/** The values of the texts in the controls. Empty fields are left out. */
export function readValues(fields: readonly FormField[], draftOf: (name: string) => string): ReadValues {
  const values: Record<string, unknown> = {};
  const faults: SchemaFault[] = [];
  for (const { name, control } of fields) {
    const draft = draftOf(name);
    if (draft.trim() === "") continue;
    const read = fromDraft(draft, control);
    if ("fault" in read) faults.push({ path: pointerTo(name), message: read.fault });
    else if (name !== "") setOwn(values, name, read.value);
    else if (isRecord(read.value)) return { values: read.value };
    else faults.push({ path: "/", message: "This must be a JSON object" });
  }
  return faults.length > 0 ? { faults } : { values };
}

/** The problems by the name of their field. Problems that belong to no field are under `undefined`. */
export function faultsByField(
  fields: readonly FormField[],
  faults: readonly SchemaFault[],
): ReadonlyMap<string | undefined, string> {
  const known = new Set(fields.map(({ name }) => name));
  const found = new Map<string | undefined, string>();
  for (const { path, message } of faults) {
    const [, first = "", ...inner] = path.split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const field = known.has(first) ? first : known.has("") ? "" : undefined;
    const place = field === first ? inner.join("/") : path;
    const title = fields.find(({ name }) => name === field)?.title;
    const sentence = plainFault(message, place, title);
    const before = found.get(field);
    found.set(field, before === undefined ? sentence : `${before}; ${sentence}`);
  }
  return found;
}

/** What a validator says, and the words for a person who fills in a form. `$1` is the number or the text of the schema. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^must have required property .*$/s, "is needed"],
  [/^must NOT have (?:additional|unevaluated) (?:properties|items)$/, "is not expected here"],
  [/^must be string$/, "must be a text"],
  [/^must be integer$/, "must be a whole number"],
  [/^must be number$/, "must be a number"],
  [/^must be boolean$/, "must be true or false"],
  [/^must be array$/, "must be a list"],
  [/^must be object$/, "must be an object"],
  [/^must be null$/, "must be empty (null)"],
  [/^must be equal to one of the allowed values$/, "must be one of the allowed values"],
  [/^must be equal to constant$/, "must be the one allowed value"],
  [/^must NOT have fewer than 1 characters?$/, "must not be empty"],
  [/^must NOT have fewer than (\d+) characters?$/, "must have at least $1 characters"],
  [/^must NOT have more than 1 characters?$/, "must have at most 1 character"],
  [/^must NOT have more than (\d+) characters?$/, "must have at most $1 characters"],
  [/^must NOT have fewer than 1 (?:items|properties)$/, "must not be empty"],
  [/^must NOT have fewer than (\d+) items?$/, "must have at least $1 items"],
  [/^must NOT have more than 1 items?$/, "must have at most 1 item"],
  [/^must NOT have more than (\d+) items?$/, "must have at most $1 items"],
  [/^must NOT have fewer than (\d+) properties$/, "must have at least $1 properties"],
  [/^must NOT have more than 1 properties$/, "must have at most 1 property"],
  [/^must NOT have more than (\d+) properties$/, "must have at most $1 properties"],
  [/^must NOT have duplicate items\b/, "must not have the same item twice"],
  [/^must be >= (\S+)$/, "must be at least $1"],
  [/^must be <= (\S+)$/, "must be at most $1"],
  [/^must be > (\S+)$/, "must be greater than $1"],
  [/^must be < (\S+)$/, "must be less than $1"],
  [/^must be multiple of (\S+)$/, "must be a multiple of $1"],
  [/^must match pattern "(.*)"$/s, "must match the pattern $1"],
  [/^must match format "(.*)"$/, "must have the format $1"],
];

/**
 * A validator's message as a sentence for a person who fills in a form. `place` is where in the field's value, empty for the whole value.
 * `title` is that of the field, if the message belongs to a field. Messages in other words stay as they are.
 */
function plainFault(message: string, place: string, title: string | undefined): string {
  const [found, words] = WORDS.find(([pattern]) => pattern.test(message)) ?? [];
  const said = found && words ? message.replace(found, words) : undefined;
  if (place !== "") return said?.startsWith("is ") ? `${place} ${said}` : `${place}: ${said ?? message}`;
  if (said === undefined) return message;
  return title === undefined ? `This ${said}` : `${title} ${said}`;
}

function pointerTo(name: string): string {
  return `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function controlOf({
  type,
  enum: choices,
  const: only,
  maxLength,
  pattern,
  format,
}: Readonly<Record<string, unknown>>): FormField["control"] {
  if (Array.isArray(choices)) return { kind: "choice", choices };
  if (only !== undefined) return { kind: "choice", choices: [only] };
  switch (type) {
    case "string": {
      const isLine = pattern !== undefined || format !== undefined || (typeof maxLength === "number" && maxLength <= LINE_LENGTH);
      return { kind: "text", isLong: !isLine };
    }
    case "integer":
      return { kind: "number", step: "1" };
    case "number":
      return { kind: "number", step: "any" };
    case "boolean":
      return { kind: "choice", choices: [true, false] };
    default:
      return { kind: "json" };
  }
}

function shapeOf({ type }: Readonly<Record<string, unknown>>): string {
  return typeof type === "string" ? `: ${type === "array" || type === "object" ? `an ${type}` : type}` : "";
}

/** Choices are distinguished by their JSON: `1` and `"1"` are different. */
function toDraft(value: unknown, control: FormField["control"]): string {
  if (control.kind === "choice") return JSON.stringify(value);
  return typeof value === "string" && control.kind !== "json" ? value : JSON.stringify(value, undefined, 2);
}

function fromDraft(draft: string, { kind }: FormField["control"]): { readonly value: unknown } | { readonly fault: string } {
  // A page without a script sends the line breaks of a text as CR LF.
  if (kind === "text") return { value: draft.replaceAll("\r\n", "\n") };
  if (kind === "number") {
    const value = Number(draft);
    if (!Number.isFinite(value)) return { fault: "This must be a number" };
    return typeof parseJson(JSON.stringify(value)) === "string" ? { fault: "This number is too large" } : { value };
  }
  try {
    return { value: parseJson(draft) };
  } catch {
    return { fault: "Invalid JSON" };
  }
}
