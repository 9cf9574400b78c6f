import { CallFailed } from "@portico/core/client";
import { faultsByField, type FormField, formFields, readValues } from "@portico/plugins/workflow-service/client";
import { describeFailure } from "../../api/describe-failure.ts";

type SchemaFault = Parameters<typeof faultsByField>[1][number];

/** A form for a JSON Schema: the input, and the problems that the service reports. */
export class SchemaForm {
  readonly fields: readonly FormField[];
  drafts = $state<Record<string, string>>({});
  problems = $state.raw<ReadonlyMap<string | undefined, string>>(new Map());

  constructor(schema: Parameters<typeof formFields>[0]) {
    this.fields = formFields(schema);
    this.drafts = Object.fromEntries(this.fields.map(({ name, draft }) => [name, draft]));
  }

  /**
   * Sends the input. Returns the result of `send`, or undefined if the input is invalid. Then the problems are in `problems`: at their fields if
   * the service names the places, and under `undefined` if they belong to no field.
   */
  async submit<T>(send: (values: Readonly<Record<string, unknown>>) => Promise<T>): Promise<T | undefined> {
    this.problems = new Map();
    const read = readValues(this.fields, (name) => this.drafts[name] ?? "");
    if ("faults" in read) {
      this.problems = faultsByField(this.fields, read.faults);
      return undefined;
    }
    try {
      return await send(read.values);
    } catch (error) {
      this.problems = this.#problemsOf(error);
      return undefined;
    }
  }

  #problemsOf(error: unknown): ReadonlyMap<string | undefined, string> {
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
