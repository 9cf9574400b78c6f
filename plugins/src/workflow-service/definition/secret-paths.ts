import { isRecord } from "@portico/core/contract";
import { type Subschema, subschemas } from "@portico/core/kit";
import type { JsonSchema } from "./definition.ts";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";

/** The places of a value that a schema calls secret, in any of its branches. Undefined without such places. */
export function secretPaths(root: JsonSchema, value: unknown): SensitivePaths | undefined {
  const { secret, leading } = secretsOf(root);
  if (!leading.has(root)) return undefined;
  const places: (readonly string[])[] = [];
  const visit = (schemas: Iterable<JsonSchema>, at: unknown, way: readonly string[]): void => {
    const applied = new Set(schemas);
    const inner: Inner[] = [];
    // The loop also reaches the schemas that are added during it.
    for (const within of applied) {
      if (secret.has(within)) return void places.push(way);
      for (const below of subschemas(within, root)) {
        if (!leading.has(below.schema) || below.isDefinition) continue;
        if (below.isInPlace) applied.add(below.schema);
        else inner.push({ ...below, within });
      }
    }
    if (typeof at !== "object" || at === null || inner.length === 0) return;
    for (const [key, each] of Object.entries(at)) {
      const concerned = inner.filter((below) => concerns(below, key));
      if (concerned.length > 0)
        visit(
          concerned.map(({ schema }) => schema),
          each,
          [...way, key],
        );
    }
  };
  visit([root], value, []);
  return places.length > 0 ? places : undefined;
}

/** Whether a schema calls the value at this path, or a part of it, secret. Also true if the path leads to schemas that are not followed. */
export function mayBeSecret(root: JsonSchema, path: readonly string[]): boolean {
  const { secret, leading } = secretsOf(root);
  let schema = root;
  for (const key of path) {
    if (secret.has(schema) || !leading.has(schema)) break;
    const { properties } = schema;
    // Its value may be described in another form, such as by `allOf`.
    const inner: unknown = isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (!isRecord(inner)) break;
    schema = inner;
  }
  return leading.has(schema);
}

/** Whether a schema says that its value is a secret. */
export function isSecretSchema(schema: unknown): boolean {
  return isRecord(schema) && (schema["writeOnly"] === true || schema["format"] === "password");
}

interface Inner extends Subschema {
  readonly within: JsonSchema;
}

/** Whether a schema may apply to a key of an object, or to an index of a list. Patterns of keys are not compared: they count as matching. */
function concerns({ path: [keyword, name], within }: Inner, key: string): boolean {
  if (keyword === "properties" || keyword === "prefixItems") return String(name) === key;
  if (keyword === "additionalProperties") {
    const { properties } = within;
    return !(isRecord(properties) && Object.hasOwn(properties, key));
  }
  return keyword !== "propertyNames";
}

interface Secrets {
  readonly secret: ReadonlySet<JsonSchema>;
  /** The schemas from which a secret one can be reached. */
  readonly leading: ReadonlySet<JsonSchema>;
}

const known = new WeakMap<JsonSchema, Secrets>();

function secretsOf(root: JsonSchema): Secrets {
  const before = known.get(root);
  if (before) return before;
  const above = new Map<JsonSchema, JsonSchema[]>([[root, []]]);
  for (const [schema] of above) {
    for (const { schema: below } of subschemas(schema, root)) {
      const parents = above.get(below);
      if (parents) parents.push(schema);
      else above.set(below, [schema]);
    }
  }
  const secret = new Set([...above.keys()].filter(isSecretSchema));
  // The target of such a reference is not looked up: it may be one of the secret schemas.
  if (secret.size > 0) for (const schema of above.keys()) if (hasNamedReference(schema)) secret.add(schema);
  const leading = new Set(secret);
  for (const schema of leading) for (const parent of above.get(schema)!) leading.add(parent);
  const found = { secret, leading };
  known.set(root, found);
  return found;
}

/** Whether a schema refers to another by its `$anchor` or `$id`. */
function hasNamedReference({ $ref, $dynamicRef }: JsonSchema): boolean {
  return [$ref, $dynamicRef].some((each) => typeof each === "string" && !/^#(?:\/|$)/.test(each));
}
