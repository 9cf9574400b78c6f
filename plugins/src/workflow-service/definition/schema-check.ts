import { ports } from "@portico/core";
import type { SchemaChecks, SchemaFault as Fault } from "@portico/core/kit";
import type { JsonSchema } from "./definition.ts";

/** One violation of a schema, without the value: a JSON pointer and the problem. */
export interface SchemaFault {
  readonly path: string;
  readonly message: string;
}

type Checked<T> = { readonly value: T } | { readonly faults: readonly SchemaFault[] };

/**
 * Returns the value with the schema's defaults, or all violations. The value has at most NODE_OUTPUT_LEVELS and is not changed. Throws
 * EngineUnavailable if the service closes meanwhile.
 */
export async function checkSchema<T>(checks: SchemaChecks, schema: JsonSchema, value: T): Promise<Checked<T>> {
  const options = { allFaults: true, fillsDefaults: true };
  const checked = await checks.check(schema, value, options).catch((cause: unknown) => {
    throw new ports.EngineUnavailable("The service closes", { cause });
  });
  if ("value" in checked) return { value: checked.value as T };
  return { faults: "faults" in checked ? checked.faults.map(toShown) : [{ path: "/", message: checked.unusable }] };
}

/** The path of a missing or an unexpected property is that of the property. */
export function toShown({ at, member, message }: Fault): SchemaFault {
  const path = [at, member].filter((part) => part !== undefined).join("/");
  return { path: path === "" ? "/" : path, message };
}
