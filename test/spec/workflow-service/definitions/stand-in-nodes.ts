import type { ports } from "@portico/core";
import * as v from "valibot";
import { loadDefinition } from "../../../../plugins/src/workflow-service/definition/load-definition.ts";
import { builtInKinds, builtInNodes } from "../../../../plugins/src/workflow-service/kinds/node-table.ts";

const anyObject = v.record(v.string(), v.unknown());

/** Kinds of nodes as adapters have them, as far as definitions look at them. */
const leaves: readonly ports.NodeRules[] = [
  {
    type: "model",
    input: v.strictObject({
      provider: v.optional(v.string()),
      model: v.optional(v.string()),
      prompt: v.string(),
      maxTokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
      output: v.optional(anyObject),
    }),
    keys: { output: "verbatim" },
    check: ({ provider }) =>
      provider === "gone" ? [{ path: ["provider"], message: "This instance has no provider of this name" }] : [],
    repeatable: true,
  },
  {
    type: "http",
    input: v.strictObject({
      method: v.picklist(["GET", "POST"]),
      url: v.string(),
      headers: v.optional(v.record(v.string(), v.string())),
      body: v.optional(v.unknown()),
    }),
    repeatable: ({ method }) => method === "GET",
  },
  {
    type: "transform",
    input: v.union([
      v.strictObject({ value: v.unknown() }),
      v.strictObject({ jsonata: v.string(), input: v.optional(v.unknown()) }),
    ]),
    keys: { jsonata: "verbatim" },
    repeatable: true,
    pure: true,
  },
  {
    type: "code",
    input: v.strictObject({ language: v.picklist(["javascript"]), source: v.string(), input: v.optional(v.unknown()) }),
    keys: { source: "verbatim" },
    check: () => [{ path: [], message: "This instance runs no code" }],
    repeatable: true,
  },
];

export const types: ReadonlyMap<string, ports.NodeRules> = new Map(
  [...builtInKinds, ...builtInNodes, ...leaves].map((each) => [each.type, each] as const),
);

export const secretNames = ["TRACKER", "OTHER"];

export const load = (text: string, name = "sample.yaml") => loadDefinition({ name, text }, { types, secretNames });

/** The definition. If it is invalid, the test fails and shows why. */
export function loaded(text: string, name?: string) {
  const { definition, problems } = load(text, name);
  if (!definition) throw new Error(problems.map((each) => `${each.line}:${each.column} ${each.path} ${each.message}`).join("\n"));
  return definition;
}
