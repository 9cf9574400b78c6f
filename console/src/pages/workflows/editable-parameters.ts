import type { WorkflowDefinition } from "./workflow-calls.ts";

/** As the history of runs shows secrets. They can be a part of a longer text. */
const MASKED = "***";

/** Parameters of a run, as a form for another run. */
export interface EditableParameters {
  /** Of the parameters that can be edited. Their values are the defaults. */
  readonly schema: WorkflowDefinition["parameters"];
  /** The parameters that the run has. */
  readonly given: ReadonlySet<string>;
  /** The names of the parameters that contain secrets. Their values are unknown here. */
  readonly masked: readonly string[];
}

/** Undefined if no parameter can be edited. `schema`: of the deployed workflow. Parameters without a schema are edited, too. */
export function editableParameters(
  schema: WorkflowDefinition["parameters"],
  parameters: unknown,
): EditableParameters | undefined {
  if (typeof parameters !== "object" || parameters === null) return undefined;
  const given = Object.entries(parameters) as (readonly [string, unknown])[];
  const masked = given.filter(([, value]) => JSON.stringify(value).includes(MASKED)).map(([name]) => name);
  const properties = new Map(Object.entries((schema["properties"] ?? {}) as Readonly<Record<string, unknown>>));
  for (const [name, value] of given) {
    const property = properties.get(name) ?? { ...(typeof value === "string" && { type: "string" }) };
    properties.set(name, { ...(typeof property === "object" ? property : {}), default: value });
  }
  for (const name of masked) properties.delete(name);
  if (properties.size === 0) return undefined;
  return {
    schema: { ...schema, properties: Object.fromEntries(properties) },
    given: new Set(given.map(([name]) => name)),
    masked,
  };
}
