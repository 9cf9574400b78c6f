import type { SchemaChecks } from "@portico/core/kit";

/**
 * Why arguments violate a tool's schema, by path and without their values. Undefined if they match it. With an invalid schema, all arguments are
 * refused. Rejects with the signal's reason.
 */
export type ArgumentsFault = (
  schema: Readonly<Record<string, unknown>>,
  args: unknown,
  signal?: AbortSignal,
) => Promise<string | undefined>;

export function createArgumentsFault(checks: SchemaChecks): ArgumentsFault {
  return async (schema, args, signal) => {
    // A tool checks its arguments itself, too.
    const checked = await checks.check(schema, args, { isForeign: true, signal });
    if ("unusable" in checked) return "the tool's schema cannot be used";
    if (!("faults" in checked)) return undefined;
    const [fault] = checked.faults;
    return `${fault?.at || "(arguments)"} ${fault?.message ?? "does not fit"}`;
  };
}
