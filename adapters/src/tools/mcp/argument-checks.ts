import { ports } from "@portico/core";
import { Ajv, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

/** Throws ToolArgumentsInvalid for arguments that break the schema it was made of. */
export type ArgumentCheck = (args: unknown) => void;

/** Larger ones are no description of arguments any more, and compiling costs time. */
const SCHEMA_CHARACTERS = 256 * 1024;
const MOST_FAULTS = 5;

const AJV_OPTIONS: Options = {
  // Servers write schemas for many readers: words and formats that ajv does not know are no faults.
  strict: false,
  validateFormats: false,
  logger: false,
};

/**
 * Checks by schema, each compiled once, however often a server lists it. `compile` answers undefined for a schema that is none, or is not
 * an object's. Dialects: draft-07 where `$schema` says so, 2020-12 otherwise, as the protocol has it.
 */
export class ArgumentChecks {
  #draft07: Ajv | undefined;
  #draft2020: Ajv | undefined;
  #compiled = new Map<string, ArgumentCheck | undefined>();

  compile(schema: unknown): ArgumentCheck | undefined {
    const text = isObjectSchema(schema) ? JSON.stringify(schema) : undefined;
    if (text === undefined || text.length > SCHEMA_CHARACTERS) return undefined;
    if (!this.#compiled.has(text)) this.#compiled.set(text, this.#create(text));
    return this.#compiled.get(text);
  }

  /** Forget all schemas but these: a server may change its list for ever. */
  keep(schemas: readonly unknown[]): void {
    const texts = new Set(schemas.map((schema) => JSON.stringify(schema)));
    for (const text of this.#compiled.keys()) if (!texts.has(text)) this.#compiled.delete(text);
  }

  #create(text: string): ArgumentCheck | undefined {
    const { $schema, ...schema } = JSON.parse(text) as Record<string, unknown>;
    // An asynchronous schema answers with a promise, which would pass for "yes".
    if (text.includes('"$async"')) return undefined;
    const ajv = /draft-0[67]/.test(String($schema))
      ? (this.#draft07 ??= new Ajv(AJV_OPTIONS))
      : (this.#draft2020 ??= new Ajv2020(AJV_OPTIONS));
    try {
      return checkWith(ajv.compile(schema));
    } catch {
      return undefined;
    } finally {
      // All that is not of the dialect itself: two tools may use the same `$id`, inside their schemas, too.
      ajv.removeSchema();
    }
  }
}

function checkWith(validate: ValidateFunction): ArgumentCheck {
  return (args) => {
    if (validate(args)) return;
    // ajv's words come from the schema alone: the values never appear.
    const faults = (validate.errors ?? []).slice(0, MOST_FAULTS).map(({ instancePath, message }) => {
      return `${instancePath || "the arguments"}: ${message ?? "invalid"}`;
    });
    throw new ports.ToolArgumentsInvalid(faults.join("; "));
  };
}

function isObjectSchema(schema: unknown): schema is Readonly<Record<string, unknown>> {
  return (
    typeof schema === "object" && schema !== null && !Array.isArray(schema) && (schema as { type?: unknown }).type === "object"
  );
}
