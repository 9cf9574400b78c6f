import { CallFailed } from "@portico/core/client";
import { describeFailure } from "../../api/describe-failure.ts";
import {
  type Drafts,
  faultsByField,
  type FormField,
  formFields,
  formValues,
  type JsonSchema,
  MalformedField,
  type SchemaFault,
} from "./form-fields.ts";

/** A form for a JSON Schema: the input, and the problems that the service reports. */
export class SchemaForm {
  readonly fields: readonly FormField[];
  drafts = $state<Record<string, string>>({});
  problems = $state.raw<ReadonlyMap<string | undefined, string>>(new Map());

  constructor(schema: JsonSchema) {
    this.fields = formFields(schema);
    this.drafts = Object.fromEntries(this.fields.map(({ name, draft }) => [name, draft]));
  }

  /**
   * Sends the input. Returns the result of `send`, or undefined if the input is invalid. Then the problems are in `problems`: at their fields if
   * the service names the places, and under `undefined` if they belong to no field.
   */
  async submit<T>(send: (values: Record<string, unknown>) => Promise<T>): Promise<T | undefined> {
    this.problems = new Map();
    try {
      return await send(formValues(this.fields, this.drafts as Drafts));
    } catch (error) {
      this.problems = this.#problemsOf(error);
      return undefined;
    }
  }

  #problemsOf(error: unknown): Map<string | undefined, string> {
    if (error instanceof MalformedField) return new Map([[error.field, error.message]]);
    const faults = CallFailed.is(error) ? faultsOf(error.body) : [];
    return faults.length > 0 ? faultsByField(this.fields, faults) : new Map([[undefined, describeFailure(error)]]);
  }
}

/** Services list the invalid places in `details`, each under its own name. */
function faultsOf(body: unknown): SchemaFault[] {
  const details = (body as { readonly details?: unknown } | undefined)?.details;
  if (typeof details !== "object" || details === null) return [];
  return Object.values(details).flat().filter(isFault);
}

function isFault(value: unknown): value is SchemaFault {
  const { path, message } = (value ?? {}) as { path?: unknown; message?: unknown };
  return typeof path === "string" && typeof message === "string";
}
