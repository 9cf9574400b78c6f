import { expect, it } from "vitest";
import { googleSchema } from "../../../core/src/model-protocols/fit/google-schema.ts";

it.each([
  ["properties", (each: object) => ({ properties: Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`p${at}`, each])) })],
  ["choices", (each: object) => ({ anyOf: Array.from({ length: 50 }, () => each) })],
  ["items of choices", (each: object) => ({ items: { oneOf: Array.from({ length: 50 }, () => each) } })],
])("a schema that refers to itself from all its %s becomes one of bounded size", (_what, of) => {
  const schema = { $defs: { node: { type: "object", ...of({ $ref: "#/$defs/node" }) } }, $ref: "#/$defs/node" };
  expect(JSON.stringify(googleSchema(schema)).length).toBeLessThan(1024 * 1024);
});

it("references are replaced by what they refer to", () => {
  const schema = { $defs: { name: { type: "string" } }, type: "object", properties: { name: { $ref: "#/$defs/name" } } };
  expect(googleSchema(schema)).toEqual({ type: "object", properties: { name: { type: "string" } } });
});
