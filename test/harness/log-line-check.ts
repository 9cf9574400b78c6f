import { logLineSchema } from "@portico/adapters/telemetry/log-line-schema";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { expect } from "vitest";

/** A parsed line of the log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string; readonly level: string };

let check: ValidateFunction | undefined;

/**
 * All lines of a log in the format `json`. Fails for a line that does not fit the published schema, or has a field that the schema
 * does not describe.
 */
export function checkedLines(stderr: string): readonly LogLine[] {
  check ??= new Ajv2020({ strict: false, allErrors: true }).compile(logLineSchema);
  const { request, message } = logLineSchema.$defs;
  const described = new Set([...Object.keys(request.properties), ...Object.keys(message.properties)]);
  return stderr
    .split("\n")
    .filter((text) => text !== "")
    .map((text) => {
      expect(text, "a line that is not JSON").toMatch(/^\{.*\}$/);
      const line = JSON.parse(text) as LogLine;
      expect(check!(line), `${text}\n${JSON.stringify(check!.errors)}`).toBe(true);
      expect(
        Object.keys(line).filter((name) => !described.has(name)),
        `fields without a description: ${text}`,
      ).toEqual([]);
      return line;
    });
}
