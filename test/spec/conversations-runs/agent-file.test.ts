import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { publishedAgentSchema } from "../../../release/references/agent.ts";

const docs = join(import.meta.dirname, "../../../docs");
const check = new Ajv2020().compile(JSON.parse(publishedAgentSchema()) as object);

it("the JSON Schema of agent.json is published as it is now (npm run docs:agent)", () => {
  expect(readFileSync(join(docs, "agent.schema.json"), "utf8")).toBe(publishedAgentSchema());
});

it.each([
  [{ name: "Plain" }, true],
  [
    { $schema: "agent.schema.json", name: "All", effort: "low", stop: ["END"], outputSchema: { type: "object" }, webhooks: {} },
    true,
  ],
  [{}, false],
  [{ name: "Typo", temprature: 1 }, false],
  [{ name: "Hot", temperature: 3 }, false],
])("it judges %j as the service does", (file, isFine) => {
  expect(check(file)).toBe(isFine);
});

it("it describes each key", () => {
  const { properties } = JSON.parse(publishedAgentSchema()) as { properties: Record<string, { description?: string }> };
  expect(Object.entries(properties).flatMap(([key, { description }]) => (description || key === "$schema" ? [] : [key]))).toEqual(
    [],
  );
});
