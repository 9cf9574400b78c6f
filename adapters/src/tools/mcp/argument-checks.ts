import { ports } from "@portico/core";
import { Ajv, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

/** Throws ToolArgumentsInvalid for arguments that violate its schema. */
export type ArgumentCheck = (args: unknown) => void;

/** Larger schemas are not reasonable descriptions of arguments, and compiling them costs time. */
const SCHEMA_CHARACTERS = 256 * 1024;
const MOST_FAULTS = 5;

const AJV_OPTIONS: Options = {
  // Servers write schemas for many readers: keywords and formats that ajv does not know are ignored.
  strict: false,
  validateFormats: false,
  logger: false,
};

/**
 * Checks by schema. Each schema is compiled once, even if a server lists it often. `compile` returns undefined for an invalid
 * schema, or a schema that is not for an object. Dialects: draft-07 if `$schema` says so, otherwise 2020-12, as the protocol
 * requires.
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

  /** Remove all schemas except these: a server may change its list any number of times. */
  keep(schemas: readonly unknown[]): void {
    const texts = new Set(schemas.map((schema) => JSON.stringify(schema)));
    for (const text of this.#compiled.keys()) if (!texts.has(text)) this.#compiled.delete(text);
  }

  #create(text: string): ArgumentCheck | undefined {
    const { $schema, ...schema } = JSON.parse(text) as Record<string, unknown>;
    // An asynchronous schema returns a promise, which would count as success.
    if (text.includes('"$async"')) return undefined;
    const ajv = /draft-0[67]/.test(String($schema))
      ? (this.#draft07 ??= new Ajv(AJV_OPTIONS))
      : (this.#draft2020 ??= new Ajv2020(AJV_OPTIONS));
    try {
      return checkWith(ajv.compile(schema));
    } catch {
      return undefined;
    } finally {
      // Removes everything except the dialect itself: two tools may use the same `$id`, also inside their schemas.
      ajv.removeSchema();
    }
  }
}

function checkWith(validate: ValidateFunction): ArgumentCheck {
  return (args) => {
    if (validate(args)) return;
    // ajv's messages come only from the schema: values never appear in them.
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
