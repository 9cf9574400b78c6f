/** Answers with which runs often go on, by kind of node. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  agent: { text: "" },
  http: { status: 200, headers: {}, body: {} },
  model: { text: "" },
};
const DEPTH = 5;

/** An answer of a node for a case, which the author corrects. `settings`: its `with`. */
export function sampleAnswer(type: string, settings: unknown): unknown {
  const { output } = (settings ?? {}) as { readonly output?: unknown };
  if (type === "model" && isRecord(output)) return sampleOf(output);
  return ANSWERS[type] ?? {};
}

/** A decision of a gate for a case. */
export function sampleDecision(settings: unknown): unknown {
  const { form } = (settings ?? {}) as { readonly form?: unknown };
  return { decision: "approve", ...(isRecord(form) && { values: sampleOf(form) }) };
}

/** A value that simple schemas allow. */
function sampleOf(schema: Readonly<Record<string, unknown>>, depth = 0): unknown {
  const { type, const: only, enum: choices, default: preset, properties, required, minimum } = schema;
  const [given] = [preset, only, Array.isArray(choices) ? (choices[0] as unknown) : undefined].filter(
    (each) => each !== undefined,
  );
  if (given !== undefined) return given;
  if (isRecord(properties) && depth < DEPTH) {
    const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
    return Object.fromEntries(
      names.map((name) => {
        const property = properties[name];
        return [name, isRecord(property) ? sampleOf(property, depth + 1) : ""];
      }),
    );
  }
  if (type === "number" || type === "integer") return typeof minimum === "number" ? minimum : 0;
  if (type === "boolean") return false;
  if (type === "array") return [];
  return type === "object" ? {} : "";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
