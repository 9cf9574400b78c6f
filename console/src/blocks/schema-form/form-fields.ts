export type JsonSchema = Readonly<Record<string, unknown>>;

/** One property of an object as a form control. Properties without a suitable control are edited as JSON. */
export interface FormField {
  /** The property. `""` if the whole value is edited as one JSON text. */
  readonly name: string;
  readonly title: string;
  readonly hint: string | undefined;
  readonly isRequired: boolean;
  readonly control:
    | { readonly kind: "text"; readonly isLong: boolean }
    | { readonly kind: "number"; readonly step: "1" | "any" }
    | { readonly kind: "choice"; readonly choices: readonly unknown[] }
    | { readonly kind: "json" };
  /** The initial value. */
  readonly draft: string;
}

/** The input, by field. */
export type Drafts = Readonly<Record<string, string>>;

/** Longer texts get a field with several lines. */
const LINE_LENGTH = 200;

/** The fields for an object schema, in the schema's order. A schema without properties becomes a single field. */
export function formFields(schema: JsonSchema): FormField[] {
  const properties = isObject(schema["properties"]) ? Object.entries(schema["properties"]) : [];
  if (properties.length === 0) {
    const hint = "A JSON object; you can leave it unchanged";
    return [{ name: "", title: "Values", hint, isRequired: false, control: { kind: "json" }, draft: "{}" }];
  }
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  return properties.map(([name, given]) => {
    const property = isObject(given) ? given : {};
    const { title, description, default: preset } = property;
    const control = controlOf(property);
    return {
      name,
      title: typeof title === "string" ? title : name,
      hint:
        [description, control.kind === "json" && `JSON${shapeOf(property)}`]
          .filter((part) => typeof part === "string")
          .join(" · ") || undefined,
      isRequired: required.has(name),
      control,
      draft: preset === undefined ? "" : toDraft(preset, control),
    };
  });
}

/** The value of the fields, for sending. Empty fields are omitted. Throws MalformedField for invalid JSON. */
export function formValues(fields: readonly FormField[], drafts: Drafts): Record<string, unknown> {
  const entries = fields.flatMap(({ name, control }) => {
    const draft = drafts[name] ?? "";
    return draft.trim() === "" ? [] : [[name, fromDraft(name, draft, control)] as const];
  });
  const [only] = entries;
  if (only?.[0] !== "") return Object.fromEntries(entries);
  if (!isObject(only[1])) throw new MalformedField("", "This must be a JSON object");
  return only[1];
}

/** The input of a field is invalid and cannot be sent. */
export class MalformedField extends Error {
  override readonly name = "MalformedField";
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

export interface SchemaFault {
  /** A JSON pointer. */
  readonly path: string;
  readonly message: string;
}

/** The problems that a service reports, by field. Problems that belong to no field are under `undefined`. */
export function faultsByField(fields: readonly FormField[], faults: readonly SchemaFault[]): Map<string | undefined, string> {
  const known = new Set(fields.map(({ name }) => name));
  const found = new Map<string | undefined, string>();
  for (const { path, message } of faults) {
    const [, first = "", ...inner] = path.split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const field = known.has(first) ? first : known.has("") ? "" : undefined;
    const place = field === first ? inner.join("/") : path;
    const sentence = place === "" ? message : `${place}: ${message}`;
    const before = found.get(field);
    found.set(field, before === undefined ? sentence : `${before}; ${sentence}`);
  }
  return found;
}

function controlOf({ type, enum: choices, const: only, maxLength, pattern, format }: JsonSchema): FormField["control"] {
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

function shapeOf({ type }: JsonSchema): string {
  return typeof type === "string" ? `: ${type === "array" || type === "object" ? `an ${type}` : type}` : "";
}

/** Choices are distinguished by their JSON: `1` and `"1"` are different. */
function toDraft(value: unknown, control: FormField["control"]): string {
  if (control.kind === "choice") return JSON.stringify(value);
  return typeof value === "string" && control.kind !== "json" ? value : JSON.stringify(value, undefined, 2);
}

function fromDraft(name: string, draft: string, { kind }: FormField["control"]): unknown {
  if (kind === "text") return draft;
  if (kind === "number") {
    const value = Number(draft);
    if (Number.isFinite(value)) return value;
    throw new MalformedField(name, "This must be a number");
  }
  try {
    return JSON.parse(draft) as unknown;
  } catch {
    throw new MalformedField(name, "Invalid JSON");
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
