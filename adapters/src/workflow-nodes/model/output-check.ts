import { createRequire } from "node:module";
import type * as ajv from "ajv/dist/2020.js";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Faults of a value by a schema, in words that repeat none of it; none where it fits. */
export type OutputCheck = (value: unknown) => string | undefined;

const load = createRequire(import.meta.url);
const MOST_FAULTS = 5;
const MOST_SCHEMAS = 100;

/** Checks by JSON Schema 2020-12, each compiled once. */
export class OutputChecks {
  #opened: ajv.Ajv2020 | undefined;
  readonly #compiled = new Map<string, OutputCheck>();

  /** Throws an Error, in words for the author, for what is no schema. */
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
    // It takes its time to load: services whose nodes ask for no schema do not wait for it.
    const { Ajv2020 } = load("ajv/dist/2020.js") as typeof ajv;
    // Authors write formats and words for models to read, which ajv need not know.
    return (this.#opened = new Ajv2020({ strict: false, validateFormats: false, logger: false }));
  }

  #compile(text: string): OutputCheck {
    const { $schema: _dialect, ...schema } = JSON.parse(text) as JsonSchema;
    // It would answer with a promise, which would pass for "yes".
    if (text.includes('"$async"')) throw new Error("$async is no part of JSON Schema");
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
