import { createContext, Script } from "node:vm";
import type { ValidateFunction } from "ajv/dist/2020.js";
import { createAjv } from "./definition/create-ajv.ts";
import { SCHEMA_CHECK_MS } from "./definition/definition-limits.ts";
import type { JsonSchema } from "./definition/definition.ts";

/** One violation of a schema, without the value: a JSON pointer and the problem. */
export interface SchemaFault {
  readonly path: string;
  readonly message: string;
}

export type Checked = { readonly value: Readonly<Record<string, unknown>> } | { readonly faults: readonly SchemaFault[] };

const MOST_FAULTS = 20;
const MAY_TAKE_LONG = /"(?:\$ref|\$dynamicRef|uniqueItems)":/;
const TOO_LONG = `takes more than ${SCHEMA_CHECK_MS / 1000} s of processor time to be checked against the schema`;

/** Compiled schemas are cached as long as the object that contains the schema. */
const known = new WeakMap<JsonSchema, Check>();

interface Check {
  readonly validate: ValidateFunction;
  /** Whether it applies defaults to the checked value. */
  readonly fills: boolean;
  /** Whether its time can grow faster than the size of the value. */
  readonly mayTakeLong: boolean;
}

/** Returns a copy with the schema's defaults, or all violations. The value has at most NODE_OUTPUT_LEVELS and is not changed. */
export function checkSchema(schema: JsonSchema, value: Readonly<Record<string, unknown>>): Checked {
  let check = known.get(schema);
  if (!check) {
    // One instance per schema, because a shared instance would keep all schemas in memory.
    const ajv = createAjv({ allErrors: true, useDefaults: true, validateSchema: false, meta: false });
    const { $schema: _dialect, ...rest } = schema;
    const text = JSON.stringify(rest);
    check = { validate: ajv.compile(rest), fills: text.includes('"default":'), mayTakeLong: MAY_TAKE_LONG.test(text) };
    known.set(schema, check);
  }
  const { validate, fills, mayTakeLong } = check;
  let checked = value;
  const run = () => {
    // Copied through JSON, because structuredClone is slower and overflows the stack at a third of the levels.
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
 * Undefined if the check takes too much processor time, or recurses without end. Only the timeout of `node:vm` can stop synchronous code. It
 * measures elapsed time, so a process that was suspended or has little processor time gets more time.
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
      // The timer may fire slightly too early.
      if (processorMs() - before >= SCHEMA_CHECK_MS * 0.9) return undefined;
    } finally {
      around["check"] = undefined;
    }
  }
}

/** Processor time of this thread. Before Node.js 23.9 it is that of the process, which is larger, so no check takes longer than the limit. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
}
