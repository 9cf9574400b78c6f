import { createHash } from "node:crypto";
import fc from "fast-check";
import { stringify } from "yaml";
import { describe, expect, it } from "vitest";
import type { ExpressionScope } from "../../../../plugins/src/workflow-service/expressions/expression.ts";
import { loadDefinition } from "../../../../plugins/src/workflow-service/definition/load-definition.ts";
import { load, loaded, secretNames, types } from "./stand-in-nodes.ts";

const scope: ExpressionScope = {
  parameters: { ticket: "T-1" },
  nodes: { a: { status: "completed", output: { kind: "bug" } } },
  run: { id: "r", workflowId: "w", startedAt: "s" },
  secrets: { TRACKER: "t" },
};

describe("a loaded definition", () => {
  it("has the defaults of what is not written", () => {
    const text = "nodes: { a: { type: fail, with: { message: x } } }";
    const definition = loaded(text, "support/triage.yaml");
    expect(definition).toMatchObject({
      id: "triage",
      name: "triage",
      description: "",
      creator: "",
      text,
      hash: createHash("sha256").update(`triage\n${text}`).digest("hex"),
      parameters: { type: "object" },
      timeoutMs: 24 * 60 * 60 * 1000,
    });
    expect(definition.outputs).toBeUndefined();
    expect(definition.graph.nodes.get("a")).toMatchObject({
      id: "a",
      needs: [],
      retry: { attempts: 1 },
      onError: "fail",
    });
  });

  it("has what is written", () => {
    const definition = loaded(
      `id: flow
name: My flow
settings: { timeout: PT30M }
parameters: { type: object, properties: { __proto__: { type: string } } }
nodes:
  b:
    type: model
    name: Second
    needs: [a.yes]
    if: "\${{ nodes.a.output.kind == 'bug' }}"
    with: { prompt: "Hi \${{ parameters.ticket }}", output: { const: "\${{ not.filled }}" } }
    retry: { attempts: 3, delay: 2s, factor: 3, maxDelay: 1m }
    timeout: 60s
    onError: continue
    idempotent: false
  a: { type: branch, with: { cases: { yes: "true", no: "parameters.ticket == 'x'" }, else: other } }
outputs: { kind: "\${{ nodes.a.output.kind }}" }
`,
    );
    expect(definition).toMatchObject({ id: "flow", name: "My flow", timeoutMs: 1_800_000 });
    expect(Object.keys(definition.parameters["properties"] as object)).toEqual(["__proto__"]);
    expect([...definition.graph.nodes.keys()]).toEqual(["a", "b"]);
    const { a, b } = Object.fromEntries(definition.graph.nodes);
    expect(a!.cases).toEqual(new Set(["yes", "no", "other"]));
    expect(b).toMatchObject({
      name: "Second",
      needs: [{ node: "a", case: "yes" }],
      retry: { attempts: 3, delayMs: 2000, factor: 3, maxDelayMs: 60_000 },
      timeoutMs: 60_000,
      onError: "continue",
      idempotent: false,
    });
    expect(b!.condition!.evaluate(scope)).toBe(true);
    const { prompt, output } = b!.with;
    expect(prompt?.kind === "template" && prompt.template.fill(scope)).toBe("Hi T-1");
    expect(output).toEqual({ kind: "verbatim", value: { const: "${{ not.filled }}" } });
    const { cases } = a!.with;
    expect(cases?.kind === "expressions" && cases.expressions.get("no")!.evaluate(scope)).toBe(false);
    expect(definition.outputs!.fill(scope)).toEqual({ kind: "bug" });
  });

  it("has schedules as the port takes them, with the parameters as they are written", () => {
    const { schedules } = loaded(`
schedules:
  - { name: early, cron: "30 2 * * *", timeZone: Europe/Berlin, jitter: 5m, catchUp: 0, overlap: skip }
  - { name: often, every: 90s, enabled: false, parameters: { __proto__: 1, topic: tea } }
nodes: { a: { type: fail, with: { message: x } } }
`);
    expect(schedules).toMatchObject([
      {
        ...{ name: "early", timing: { cron: "30 2 * * *", timeZone: "Europe/Berlin" }, enabled: true, parameters: {} },
        ...{ jitterMs: 300_000, catchUp: 0, overlap: "skip" },
      },
      { name: "often", timing: { everyMs: 90_000 }, enabled: false },
    ]);
    expect(Object.keys(schedules[1]!.parameters)).toEqual(["__proto__", "topic"]);
  });

  it("of a run can be used although its schedules cannot be checked any more, such as their time zone", () => {
    const text = `
schedules: [{ name: early, cron: "30 2 * * *", timeZone: Gone/City }]
nodes: { a: { type: fail, with: { message: x } } }
`;
    expect(load(text).problems).toHaveLength(1);
    const stored = loadDefinition({ name: "sample.yaml", text, isStored: true }, { types, secretNames });
    expect(stored.definition?.schedules).toEqual([]);
  });

  it("has graphs in it, whose nodes see what is before them, and what is around", () => {
    const definition = loaded(`
nodes:
  first: { type: transform, with: { value: [1, 2] } }
  each:
    type: map
    needs: [first]
    with:
      items: nodes.first.output
      nodes:
        one: { type: transform, with: { value: "\${{ item + index + nodes.first.output[0] }}" } }
        two:
          type: loop
          needs: [one]
          with:
            nodes: { three: { type: transform, with: { value: "\${{ [item, previous, nodes.one.output] }}" } } }
            until: nodes.three.output[0] > nodes.one.output
            result: nodes.three.output
      result: "[nodes.one.output, nodes.two.output, nodes.first.output]"
`);
    const { items, nodes, result } = definition.graph.nodes.get("each")!.with;
    expect([items!.kind, nodes!.kind, result!.kind]).toEqual(["expression", "graph", "expression"]);
    expect(nodes?.kind === "graph" && [...nodes.graph.nodes.keys()]).toEqual(["one", "two"]);
  });

  it("accepts a literal list of items with templates in it", () => {
    const definition = loaded(
      `nodes: { a: { type: map, with: { items: [1, "\${{ parameters.ticket }}"], result: "item", nodes: { x: { type: transform, with: { value: 1 } } } } } }`,
    );
    const { items } = definition.graph.nodes.get("a")!.with;
    expect(items?.kind === "template" && items.template.fill(scope)).toEqual([1, "T-1"]);
  });

  it("may be JSON", () => {
    const value = { id: "j", nodes: { a: { type: "fail", with: { message: "x" } } } };
    expect(loaded(JSON.stringify(value, null, 2)).id).toBe("j");
  });

  it("may use anchors and aliases", () => {
    const definition = loaded(
      "nodes:\n  a: { type: fail, with: &given { message: x }, retry: &again { attempts: 2 } }\n  b: { type: fail, with: *given, retry: *again }\n",
    );
    expect(definition.graph.nodes.get("b")!.retry.attempts).toBe(2);
  });

  it("leaves values alone that come of templates, but not what is sure to be wrong", () => {
    const text = (given: string) => `nodes: { a: { type: agent, with: { agent: x, prompt: y, ${given} } } }`;
    expect(load(text('maxTurns: "${{ parameters.n }}", toolIds: ["${{ parameters.t }}"]')).problems).toBeUndefined();
    expect(load(text('toolIds: "${{ parameters.all }}"')).problems).toBeUndefined();
    expect(load(text('maxTurns: "7"')).problems).toHaveLength(1);
    expect(load('nodes: { a: { type: wait, with: { for: "${{ parameters.delay }}" } } }').problems).toBeUndefined();
  });

  it("can set an id if the file's name is not a valid id", () => {
    const text = "nodes: { a: { type: fail, with: { message: x } } }";
    const [problem] = load(text, "my flow.yaml").problems!;
    expect(problem).toMatchObject({ line: 1, column: 1, path: "$" });
    expect(problem!.message).toContain("add the key `id`");
    expect(load(`id: mine\n${text}`, "my flow.yaml").definition?.id).toBe("mine");
  });
});

describe("loading never throws and never hangs", () => {
  const check = (text: string) => {
    const { definition, problems } = load(text);
    expect(Boolean(definition)).toBe(problems === undefined);
    for (const { line, column, message } of problems ?? []) {
      expect(line).toBeGreaterThan(0);
      expect(column).toBeGreaterThan(0);
      expect(message).not.toBe("");
    }
  };

  it("for any text", () => {
    const piece = fc.constantFrom(
      ...[
        "nodes:",
        "\n",
        "  ",
        "- ",
        "a",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "&x ",
        "*x",
        "!t ",
        "? ",
        "|",
        ">",
        "'",
        '"',
        "${{ ",
        " }}",
        "#",
        "---\n",
        "\t",
        ",",
      ],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => check(pieces.join(""))),
      { numRuns: 500 },
    );
    fc.assert(fc.property(fc.string({ unit: "binary" }), check));
  });

  it("for any JSON", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => check(JSON.stringify(value))));
    fc.assert(fc.property(fc.jsonValue(), (value) => check(stringify(value))));
  });

  it("for any content in a document that looks like a definition", () => {
    const text = fc.constantFrom(
      "a",
      "b",
      "a.yes",
      "${{ nodes.a.output }}",
      "nodes.b",
      "true",
      "5s",
      "__proto__",
      "${{",
      "item",
      "[1]",
    );
    const some = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: "small" },
        text,
        fc.integer(),
        fc.constant(null),
        fc.boolean(),
        fc.array(tie("any")),
        tie("object"),
      ),
      object: fc.dictionary(
        fc.constantFrom(
          ...[
            "type",
            "needs",
            "if",
            "with",
            "nodes",
            "cases",
            "else",
            "items",
            "result",
            "until",
            "for",
            "value",
            "retry",
            "a",
            "__proto__",
          ],
        ),
        tie("any"),
      ),
    })).any;
    const node = fc.record(
      {
        type: fc.constantFrom("branch", "map", "loop", "wait", "transform", "human_gate", "model", "nope"),
        needs: fc.oneof(fc.array(text, { maxLength: 3 }), some),
        if: some,
        with: some,
        retry: some,
      },
      { requiredKeys: ["type"] },
    );
    const document = fc.record(
      { nodes: fc.dictionary(fc.constantFrom("a", "b", "c", "__proto__"), node), outputs: some },
      { requiredKeys: ["nodes"] },
    );
    fc.assert(
      fc.property(document, (value) => check(JSON.stringify(value))),
      { numRuns: 500 },
    );
  });
});
