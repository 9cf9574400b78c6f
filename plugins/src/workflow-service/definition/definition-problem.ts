/** A problem of a definition, and the position of the wrong key or value (1-based). */
export interface DefinitionProblem {
  readonly line: number;
  readonly column: number;
  /** JSONPath: `$.nodes.classify.with.prompt`. */
  readonly path: string;
  /** A message for the author. It contains names from the document, but no values. */
  readonly message: string;
}

export type Path = readonly (string | number)[];

/** A path as JSONPath. */
export function toJsonPath(path: Path): string {
  return `$${path.map(segment).join("")}`;
}

function segment(key: string | number): string {
  if (typeof key === "number") return `[${key}]`;
  return /^[A-Za-z_][\w-]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}
