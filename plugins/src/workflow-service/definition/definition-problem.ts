/** What is wrong with a definition, and where: 1-based, of the offending key or value. */
export interface DefinitionProblem {
  readonly line: number;
  readonly column: number;
  /** JSONPath: `$.nodes.classify.with.prompt`. */
  readonly path: string;
  /** For the author; holds no value of the document but names. */
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
