import type { Clock } from "../../ports/clock.ts";
import { JobPool, PoolBusy } from "../job-pool.ts";
import { JobOutOfMemory, JobOverran } from "../job-thread.ts";
import { costOf, type JsonSchema } from "./bound-schema.ts";
import { type CheckJob, type CheckResult, CHECK_MS, checkJson, type SchemaFault, TOO_LONG } from "./check-json.ts";
import type { CompileOptions } from "./compile-schema.ts";

/** How values are checked. */
export interface SchemaCheckOptions extends CompileOptions {
  /**
   * Whether the author of the schema checks the values again, as a server of tools does. Then patterns that RE2 lacks are left out of the
   * check. Otherwise a schema with such a pattern cannot be used. Default: false.
   */
  readonly isForeign?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The outcome of a check. */
export type CheckedJson =
  /** `value` has the schema's defaults if they were asked for. `unchecked`: the patterns that were left out. */
  | { readonly value: unknown; readonly unchecked: readonly string[] }
  | { readonly faults: readonly SchemaFault[] }
  /** The schema cannot be used: the reason, which quotes only the schema. */
  | { readonly unusable: string };

/** Characters of a value, multiplied by the cost of its schema, up to which it is checked on the event loop: in a few milliseconds. */
const CHECKED_HERE = 200_000;
/** Compiling a schema with more values takes longer than that. */
const COMPILED_HERE = 400;
const MEMORY_MB = 128;
const WAIT_MS = 30_000;
const TIMEOUT_MS = 30_000;
const BUNDLED = "cannot be checked in a bundle of @portico/core, because its check may take long";
const BUSY = "cannot be checked now, because too many other values are";

/**
 * Checks values by JSON Schemas that come from outside. Schemas and values that cannot take long are checked on the event loop. All others are
 * checked in a thread, with a limit of time and memory, which fails only that check. Close it after use.
 */
export class SchemaChecks {
  readonly #clock: Clock;
  #pool: JobPool<CheckJob, CheckResult> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Checks a value of JSON, which is not changed. Throws only the signal's reason, and an error after the closing. */
  async check(schema: JsonSchema, value: unknown, options: SchemaCheckOptions = {}): Promise<CheckedJson> {
    const text = asJson(value ?? null);
    if (text === undefined) return fault("has too many levels");
    const result = await this.#run(schema, text, options);
    if (!("unchecked" in result)) return result;
    return { value: result.value === undefined ? value : (JSON.parse(result.value) as unknown), unchecked: result.unchecked };
  }

  /** Whether a schema can be used, and the patterns that are left out. */
  async inspect(
    schema: JsonSchema,
    options: SchemaCheckOptions = {},
  ): Promise<{ readonly unchecked: readonly string[] } | { readonly unusable: string }> {
    const result = await this.#run(schema, undefined, options);
    return "faults" in result ? { unusable: "This JSON Schema cannot be used" } : result;
  }

  /** Ends the checks in progress. */
  async close(): Promise<void> {
    // Opened also if nothing was checked, so that later checks are refused.
    await this.#openPool()?.close();
  }

  /**
   * Undefined in a bundle of another package, which has no module of the thread: schemas and values that can take long are then refused. Most
   * processes never need the thread.
   */
  #openPool(): JobPool<CheckJob, CheckResult> | undefined {
    const module = moduleOfThread();
    if (!module) return undefined;
    const limits = {
      module: () => module,
      threads: 1,
      waitMs: WAIT_MS,
      cpuMs: CHECK_MS,
      timeoutMs: TIMEOUT_MS,
      memoryMb: MEMORY_MB,
    };
    return (this.#pool ??= new JobPool({ name: "schema", ...limits }, this.#clock));
  }

  async #run(
    schema: JsonSchema,
    value: string | undefined,
    { signal = NEVER, ...options }: SchemaCheckOptions,
  ): Promise<CheckResult> {
    const text = asJson(schema);
    if (text === undefined) return { unusable: "This JSON Schema has too many levels" };
    const { allFaults, fillsDefaults, isForeign } = options;
    const job: CheckJob = { schema: text, value, allFaults, fillsDefaults, isForeign };
    const cost = costOf(schema);
    if (cost <= COMPILED_HERE && cost * (value?.length ?? 0) <= CHECKED_HERE) return checkJson(job);
    const pool = this.#openPool();
    if (!pool) return fault(BUNDLED);
    try {
      return await pool.run(job, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof JobOverran || error instanceof JobOutOfMemory) return fault(TOO_LONG);
      if (error instanceof PoolBusy) return fault(BUSY);
      throw error;
    }
  }
}

function moduleOfThread(): URL | undefined {
  try {
    return new URL(import.meta.resolve("#schema-worker"));
  } catch {
    return undefined;
  }
}

const NEVER = new AbortController().signal;

function fault(message: string): { readonly faults: readonly SchemaFault[] } {
  return { faults: [{ at: "", message }] };
}

/** Undefined if it has too many levels for JSON. */
function asJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
