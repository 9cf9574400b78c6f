import { createContext, Script } from "node:vm";
import type { ValidateFunction } from "ajv/dist/2020.js";
import { createAjv } from "./definition/create-ajv.ts";
import { SCHEMA_CHECK_MS } from "./definition/definition-limits.ts";
import type { JsonSchema } from "./definition/definition.ts";

/** One place that breaks a schema, without its value: a JSON pointer, and what is wrong there. */
export interface SchemaFault {
  readonly path: string;
  readonly message: string;
}

export type Checked = { readonly value: Readonly<Record<string, unknown>> } | { readonly faults: readonly SchemaFault[] };

const MOST_FAULTS = 20;
const MAY_TAKE_LONG = /"(?:\$ref|\$dynamicRef|uniqueItems)":/;
const TOO_LONG = `takes more than ${SCHEMA_CHECK_MS / 1000} s of processor time to be checked against the schema`;

/** Schemas are kept as long as what they stand in. */
const known = new WeakMap<JsonSchema, Check>();

interface Check {
  readonly validate: ValidateFunction;
  /** Whether it puts anything into what it looks at. */
  readonly fills: boolean;
  /** Whether the time that it takes can grow faster than what it looks at. */
  readonly mayTakeLong: boolean;
}

/** A value of at most NODE_OUTPUT_LEVELS with the schema's defaults applied, or all that is wrong with it. The value itself is not changed. */
export function checkSchema(schema: JsonSchema, value: Readonly<Record<string, unknown>>): Checked {
  let check = known.get(schema);
  if (!check) {
    // One for each schema: a shared one would keep every schema that it ever saw.
    const ajv = createAjv({ allErrors: true, useDefaults: true, validateSchema: false, meta: false });
    const { $schema: _dialect, ...rest } = schema;
    const text = JSON.stringify(rest);
    check = { validate: ajv.compile(rest), fills: text.includes('"default":'), mayTakeLong: MAY_TAKE_LONG.test(text) };
    known.set(schema, check);
  }
  const { validate, fills, mayTakeLong } = check;
  let checked = value;
  const run = () => {
    // As JSON: structuredClone is slower, and overflows the stack on a third of the levels.
    if (fills) checked = JSON.parse(JSON.stringify(value)) as Readonly<Record<string, unknown>>;
    return validate(checked);
  };
  const isGood = mayTakeLong ? withinTime(run) : run();
  if (isGood === undefined) return { faults: [{ path: "/", message: TOO_LONG }] };
  if (isGood) return { value: checked };
  const faults = (validate.errors ?? []).slice(0, MOST_FAULTS).map(({ instancePath, message, params }) => {
    const missing = (params as { missingProperty?: string }).missingProperty;
    const surplus = (params as { additionalProperty?: string }).additionalProperty;
    const path = [instancePath, missing ?? surplus].filter((part) => part !== undefined).join("/");
    return { path: path === "" ? "/" : path, message: message ?? "does not fit" };
  });
  return { faults };
}

const around = createContext({ check: undefined as (() => boolean) | undefined });
const call = new Script("check()");

/**
 * Undefined if it takes too much processor time, or calls itself without end. Only a thread of Node's own can stop code that waits for nothing,
 * and that thread looks at the time of day: a process that was suspended, or shares its processors, is given more of it.
 */
function withinTime(check: () => boolean): boolean | undefined {
  for (let timeout = SCHEMA_CHECK_MS; ; timeout *= 2) {
    const before = processorMs();
    around["check"] = check;
    try {
      return call.runInContext(around, { timeout }) as boolean;
    } catch (error) {
      const { name, code } = error as NodeJS.ErrnoException;
      if (name === "RangeError") return undefined;
      if (code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      // The timer may be a little early.
      if (processorMs() - before >= SCHEMA_CHECK_MS * 0.9) return undefined;
    } finally {
      around["check"] = undefined;
    }
  }
}

/** Of this thread, or of the process if Node.js cannot tell (before 23.9): that is more, so that no check lasts longer. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
}
