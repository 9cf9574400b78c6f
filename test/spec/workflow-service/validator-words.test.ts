import { compileSchema } from "@portico/core/kit";
import { faultsByField, formFields } from "@portico/plugins/workflow-service/client";
import { describe, expect, it } from "vitest";

/** The sentence at the field `Count`, as the service and the pages make it from a value. */
function sentenceAt(schema: object, value: unknown): string | undefined {
  const whole = { type: "object", properties: { n: { title: "Count", ...schema } }, additionalProperties: false };
  const validate = compileSchema({ ...whole, ...("needed" in schema && { required: ["n"] }) }, { allFaults: true });
  validate(value);
  const faults = (validate.errors ?? []).map(({ instancePath, message = "", params }) => {
    const { missingProperty, additionalProperty } = params as Record<string, string>;
    const path = [instancePath, missingProperty ?? additionalProperty].filter((part) => part !== undefined).join("/");
    return { path: path === "" ? "/" : path, message };
  });
  const found = faultsByField(formFields(whole), faults);
  return found.get("n") ?? found.get(undefined);
}

describe("what a validator finds in a form", () => {
  it.each([
    [{ type: "string" }, 1, "Count must be a text"],
    [{ type: "integer" }, 1.5, "Count must be a whole number"],
    [{ type: "number" }, "one", "Count must be a number"],
    [{ type: "boolean" }, 1, "Count must be true or false"],
    [{ type: "array" }, 1, "Count must be a list"],
    [{ type: "object" }, 1, "Count must be an object"],
    [{ type: "null" }, 1, "Count must be empty (null)"],
    [{ enum: ["a", "b"] }, "c", "Count must be one of the allowed values"],
    [{ const: "a" }, "c", "Count must be the one allowed value"],
    [{ minLength: 1 }, "", "Count must not be empty"],
    [{ minLength: 3 }, "no", "Count must have at least 3 characters"],
    [{ maxLength: 1 }, "no", "Count must have at most 1 character"],
    [{ maxLength: 2 }, "yes", "Count must have at most 2 characters"],
    [{ minItems: 1 }, [], "Count must not be empty"],
    [{ minItems: 2 }, [], "Count must have at least 2 items"],
    [{ maxItems: 1 }, [1, 2], "Count must have at most 1 item"],
    [{ maxItems: 2 }, [1, 2, 3], "Count must have at most 2 items"],
    [{ minProperties: 2 }, {}, "Count must have at least 2 properties"],
    [{ maxProperties: 1 }, { a: 1, b: 2 }, "Count must have at most 1 property"],
    [{ uniqueItems: true }, [1, 1], "Count must not have the same item twice"],
    [{ minimum: 1 }, 0, "Count must be at least 1"],
    [{ maximum: 1.5 }, 2, "Count must be at most 1.5"],
    [{ exclusiveMinimum: -1 }, -1, "Count must be greater than -1"],
    [{ exclusiveMaximum: 1e30 }, 1e30, "Count must be less than 1e+30"],
    [{ multipleOf: 5 }, 3, "Count must be a multiple of 5"],
    [{ pattern: "^[a-z]+$" }, "A", "Count must match the pattern ^[a-z]+$"],
  ])("%j with %j: %s", (schema, value, sentence) => {
    expect(sentenceAt(schema, { n: value })).toBe(sentence);
  });

  it("names a missing field, and what is not expected", () => {
    expect(sentenceAt({ type: "string", needed: true }, {})).toBe("Count is needed");
    expect(sentenceAt({}, { other: 1 })).toBe("/other is not expected here");
  });

  it("names the place within the value of a field", () => {
    expect(sentenceAt({ type: "array", items: { type: "integer" } }, { n: [1, "two"] })).toBe("1: must be a whole number");
    const inner = { properties: { name: { type: "string" } }, required: ["name"], additionalProperties: false };
    expect(sentenceAt({ items: inner }, { n: [{ x: 1 }] })).toBe("0/name is needed; 0/x is not expected here");
  });

  it("has the format's name of validators that check formats, and keeps other messages as they are", () => {
    const field = formFields({ properties: { n: { title: "Count" } } });
    const said = (message: string) => faultsByField(field, [{ path: "/n", message }]).get("n");
    expect(said('must match format "email"')).toBe("Count must have the format email");
    for (const other of ["This must be a number", "must be string,null", "must match exactly one schema in oneOf"])
      expect(said(other)).toBe(other);
  });
});
