import { createRequire } from "node:module";
import type * as ajv from "ajv/dist/2020.js";

/** A JSON Schema of any value. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Problems of a value by a schema; empty if it fits. Messages contain no part of the value. */
export type OutputCheck = (value: unknown) => string | undefined;

const load = createRequire(import.meta.url);
const MOST_FAULTS = 5;
const MOST_SCHEMAS = 100;

/** Checks by JSON Schema 2020-12. Each schema is compiled once. */
export class OutputChecks {
  #opened: ajv.Ajv2020 | undefined;
  readonly #compiled = new Map<string, OutputCheck>();

  /** Throws an Error with a message for the author, for an invalid schema. */
  of(schema: JsonSchema): OutputCheck {
    const text = JSON.stringify(schema);
    const known = this.#compiled.get(text);
    if (known) return known;
    if (this.#compiled.size >= MOST_SCHEMAS) this.#compiled.clear();
    const check = this.#compile(text);
    this.#compiled.set(text, check);
    return check;
  }

  get #ajv(): ajv.Ajv2020 {
    if (this.#opened) return this.#opened;
    // It loads slowly. Services whose nodes use no schema do not load it.
    const { Ajv2020 } = load("ajv/dist/2020.js") as typeof ajv;
    // Authors write formats and keywords for models, which ajv need not know.
    return (this.#opened = new Ajv2020({ strict: false, validateFormats: false, logger: false }));
  }

  #compile(text: string): OutputCheck {
    const { $schema: _dialect, ...schema } = JSON.parse(text) as JsonSchema;
    // It would return a promise, which would count as success.
    if (text.includes('"$async"')) throw new Error("$async is not part of JSON Schema");
    try {
      const validate = this.#ajv.compile(schema);
      return (value) => {
        if (validate(value)) return undefined;
        const faults = (validate.errors ?? []).slice(0, MOST_FAULTS);
        return faults.map(({ instancePath, message }) => `${instancePath || "the output"}: ${message ?? "invalid"}`).join("; ");
      };
    } finally {
      this.#ajv.removeSchema();
    }
  }
}
