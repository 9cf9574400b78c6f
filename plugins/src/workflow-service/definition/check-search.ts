import { isRecord } from "@portico/core/contract";
import { chainsIn } from "./chains-in.ts";
import type { Compiling } from "./compile-template.ts";
import type { Definition, Graph, SearchFields } from "./definition.ts";
import type { Path } from "./definition-problem.ts";
import { isSecretSchema } from "./secret-paths.ts";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";

/** The parts of a document that declare what its fields are. */
interface Declaring {
  readonly parameters: unknown;
  readonly outputs: unknown;
  readonly graph: Graph;
}

/** Reads `search`: every field must be declared by the document, and must not be a secret. */
export function checkSearch(
  written: { readonly parameters?: readonly string[] | undefined; readonly outputs?: readonly string[] | undefined },
  { parameters, outputs, graph }: Declaring,
  { source, report }: Compiling,
): SearchFields {
  const each = (kind: "parameters" | "outputs", faultOf: (path: readonly string[]) => string | undefined) => {
    for (const [index, field] of (written[kind] ?? []).entries()) {
      const fault = faultOf(field.split("."));
      if (fault) report(source.problem(["search", kind, index], fault));
    }
  };
  each("parameters", (path) => parameterFault(path, parameters));
  each("outputs", (path) => outputFault(path, outputs, graph));
  return { parameters: written.parameters ?? [], outputs: written.outputs ?? [] };
}

/** Whether a definition declares a field of this kind and name. */
export function isSearchable({ search }: Definition, kind: keyof SearchFields, name: string): boolean {
  return search?.[kind].includes(name) ?? false;
}

function parameterFault(path: readonly string[], schema: unknown): string | undefined {
  let inner = schema;
  for (const [level, key] of path.entries()) {
    const properties: unknown = isRecord(inner) ? inner["properties"] : undefined;
    const isDeclared = isRecord(properties) && Object.hasOwn(properties, key);
    // Below a declared parameter, the schema may be in another form.
    if (!isDeclared) return level === 0 ? `\`parameters\` has no property "${key}"` : undefined;
    inner = properties[key];
    if (isSecretSchema(inner)) return "A secret parameter (`writeOnly` or `format: password`) cannot be searched";
  }
  return undefined;
}

function outputFault(path: readonly string[], outputs: unknown, graph: Graph): string | undefined {
  const [first] = path;
  if (!isRecord(outputs) || !Object.hasOwn(outputs, first!)) return `\`outputs\` has no key "${first}"`;
  let inner: unknown = outputs;
  for (const key of path) if (isRecord(inner) && Object.hasOwn(inner, key)) inner = inner[key];
  const secret = secretIn(inner, graph);
  return secret && `A secret output cannot be searched: it reads ${secret}`;
}

/** The secret that a template reads, if it reads one. */
function secretIn(template: unknown, { nodes }: Graph): string | undefined {
  for (const { root, keys } of chainsIn(template)) {
    const [first, ...below] = keys.map(({ name }) => name);
    if (root === "secrets") return `\`secrets.${first}\``;
    const sensitive = root === "nodes" && first !== undefined ? nodes.get(first)?.sensitive : undefined;
    if (sensitive && below[0] !== "status" && overlaps(sensitive, below.slice(1))) return `a sensitive output of "${first}"`;
  }
  return undefined;
}

/** Whether a sensitive place contains the place that is read, or is inside it. */
function overlaps(sensitive: SensitivePaths, read: Path): boolean {
  return sensitive.some((path) => path.every((key, level) => key === "*" || level >= read.length || read[level] === key));
}
