/** One broken document: a `§` stands before each offending key or value, and is not part of it. */
export interface BrokenDocument {
  readonly rule: string;
  readonly text: string;
  /** In the order of the places. */
  readonly messages: readonly string[];
  /** Whether the JSON Schema sees it, too. */
  readonly isStructural?: boolean;
}

const T = "type: transform, with: { value: 1 }";
const node = (text: string) => `nodes:\n  a: { ${T} }\n  b: ${text}\n`;
const one = (rule: string, text: string, ...messages: string[]): BrokenDocument => ({ rule, text, messages });
const structural = (rule: string, text: string, ...messages: string[]): BrokenDocument => ({
  ...one(rule, text, ...messages),
  isStructural: true,
});

const NO_DURATION =
  "This is not a duration: write `500ms`, `10s`, `5m`, `2h`, `1d`, or ISO 8601 without years and months, such as `PT5M`";
const CIRCLE = "These nodes wait for each other in a circle:";
const NO_ID = "1-64 letters, digits, `_` and `-`";

const schedule = (text: string, parameters = "") => `${parameters}schedules: [${text}]\nnodes: { a: { ${T} } }\n`;
const schedules: readonly BrokenDocument[] = [
  structural("a schedule without a name", schedule("§{ every: 1h }"), 'The key "name" is missing'),
  structural(
    "a name of a schedule that is none",
    schedule("{ name: §a b, every: 1h }"),
    "The name of a schedule is 1-64 letters, digits, `_` and `-`",
  ),
  structural("an unknown key of a schedule", schedule("{ name: a, every: 1h, §evry: 1h }"), 'There is no key "evry"'),
  one("two schedules of one name", schedule("{ name: a, every: 1h }, { name: §a, every: 2h }"), "Another schedule has this name"),
  one("a schedule without times", schedule("{ name: §a }"), "A schedule has either `cron` or `every`"),
  one(
    "a schedule with both kinds of times",
    schedule('{ name: a, cron: "0 * * * *", every: §1h }'),
    "A schedule has either `cron` or `every`",
  ),
  one("a time zone without cron", schedule("{ name: a, every: 1h, timeZone: §UTC }"), "A time zone is for `cron` only"),
  one("a cron expression that is none", schedule('{ name: a, cron: §"61 * * * *" }'), "The minute of a cron expression is"),
  one(
    "a cron expression with seconds",
    schedule('{ name: a, cron: §"0 0 * * * *" }'),
    "A cron expression has five fields: minute, hour, day of the month, month, day of the week; this one has 6",
  ),
  one(
    "a cron expression of a day that never comes",
    schedule('{ name: a, cron: §"0 0 31 2 *" }'),
    "This cron expression has no planned time: its day never comes",
  ),
  ...[
    ["hour", "0 24 * * *"],
    ["day of the month", "0 0 32 * *"],
    ["month", "0 0 1 13 *"],
    ["day of the week", "0 0 * * 8"],
  ].map(([field, cron]) =>
    one(
      `a cron expression with a wrong ${field}`,
      schedule(`{ name: a, cron: §"${cron}" }`),
      `The ${field} of a cron expression is`,
    ),
  ),
  one("an unknown time zone", schedule('{ name: a, cron: "0 * * * *", timeZone: §Mars/Base }'), "This time zone is not known"),
  one("times closer than a second", schedule("{ name: a, every: §10ms }"), "The time between planned times is at least 1 second"),
  one("a long jitter", schedule("{ name: a, every: 1d, jitter: §2h }"), "The delay of a start is at most 1 hour"),
  structural("an overlap that is none", schedule("{ name: a, every: 1h, overlap: §wait }"), "Expected "),
  structural("too many missed times", schedule("{ name: a, every: 1h, catchUp: §1001 }"), "Missed times are 0 to 1000"),
  one(
    "parameters of a schedule that do not fit",
    schedule("{ name: a, every: 1h, parameters: §{} }", "parameters: { type: object, required: [region] }\n"),
    "The parameter /region must have required property 'region'",
  ),
];

const text: readonly BrokenDocument[] = [
  one("an empty document", "§", "The document is empty"),
  one("only a comment", "§# nothing\n", "The document is empty"),
  one(
    "several documents",
    `nodes: { a: { ${T} } }\n§---\nid: b\n`,
    "A file must contain one definition: this is its second document",
  ),
  one(
    "a number with a leading zero",
    `nodes: { a: { type: transform, with: { value: §02142 } } }`,
    "A number with a leading zero",
  ),
  one("a merge key", `nodes: { a: { type: transform, with: { value: { §<<: { b: 1 } } } } }`, "YAML 1.2 has no merge key"),
  one(
    "a whole number that would lose digits",
    `nodes: { a: { type: transform, with: { value: §247868000247868102 } } }`,
    "A whole number beyond",
  ),
  one("a key that stands twice", `id: a\n§id: b\nnodes: { a: { ${T} } }\n`, 'Duplicate key "id"'),
  one("a node that stands twice", `nodes:\n  a: { ${T} }\n  §a: { ${T} }\n`, 'Duplicate key "a"'),
  one(
    "a number and a text that are one key",
    `nodes: { a: { type: transform, with: { value: { 1: x, §"1": y } } } }`,
    'Duplicate key "1"',
  ),
  one(
    "a custom tag",
    `nodes: { a: { type: transform, with: { value: §!secret x } } }`,
    "Tags other than YAML's own core ones have no meaning here",
  ),
  one(
    "a tag of a set",
    `nodes: { a: { type: transform, with: { value: !!set §{ x } } } }`,
    "Tags other than YAML's own core ones have no meaning here",
  ),
  one("a key that is no text", `nodes: { a: { type: transform, with: { value: { §[1]: x } } } }`, "A key must be a string"),
  one(
    "a number that JSON does not have",
    `nodes: { a: { type: transform, with: { value: §.inf } } }`,
    "JSON cannot represent this number",
  ),
  one("an alias of nothing", `nodes: { a: §*x }`, "No anchor with this name precedes the alias"),
  one(
    "an alias within what it names",
    `nodes: { a: &x { type: transform, with: { value: §*x } } }`,
    "An alias cannot refer to a value that contains it",
  ),
];

const document: readonly BrokenDocument[] = [
  structural("a list", `§- a\n- b\n`, "A definition must be an object with `nodes`"),
  structural("a text", `§hello`, "A definition must be an object with `nodes`"),
  structural("no nodes", `§id: a\n`, 'The key "nodes" is missing'),
  structural("nodes that are empty", `nodes: §{}\n`, "At least one node is required"),
  structural("nodes that are a list", `nodes:\n  §- ${"a"}\n`, "Expected an object, found a list"),
  structural("an unknown key", `nodes: { a: { ${T} } }\n§output: {}\n`, 'There is no key "output": did you mean "outputs"?'),
  structural("an id with a space", `id: §my flow\nnodes: { a: { ${T} } }\n`, `An id is ${NO_ID}`),
  structural("an id that is a number", `id: §7\nnodes: { a: { ${T} } }\n`, "Expected a text, found a number"),
  structural(
    "a name that is too long",
    `name: §${"x".repeat(201)}\nnodes: { a: { ${T} } }\n`,
    "This text has at most 200 characters",
  ),
  structural(
    "an unknown setting",
    `settings: { §retries: 3 }\nnodes: { a: { ${T} } }\n`,
    'There is no key "retries": there is timeout',
  ),
  structural("a timeout without a unit", `settings: { timeout: §30 }\nnodes: { a: { ${T} } }\n`, NO_DURATION),
  structural("a timeout in years", `settings: { timeout: §P1Y }\nnodes: { a: { ${T} } }\n`, NO_DURATION),
  one(
    "a timeout of more than 366 days",
    `settings: { timeout: §367d }\nnodes: { a: { ${T} } }\n`,
    "A duration is more than 0 and at most 366 days",
  ),
  one(
    "parameters that are no schema",
    `parameters: §{ type: strng }\nnodes: { a: { ${T} } }\n`,
    "Invalid JSON Schema: /type must be equal to one of the allowed values",
  ),
  one(
    "parameters that are no object's",
    `parameters: { type: §array }\nnodes: { a: { ${T} } }\n`,
    "Parameters must be an object: `type` must be `object` or omitted",
  ),
  one(
    "parameters with a reference to elsewhere",
    `parameters: §{ properties: { a: { $ref: "https://a.example/s.json" } } }\nnodes: { a: { ${T} } }\n`,
    "A reference of this JSON Schema has no target: `$ref` can only refer to the same schema",
  ),
  one(
    "parameters of another draft",
    `parameters: §{ $schema: "http://json-schema.org/draft-07/schema#" }\nnodes: { a: { ${T} } }\n`,
    "Schemas must use JSON Schema 2020-12: omit `$schema`, or set it to this version",
  ),
  structural(
    "outputs that are a text",
    `outputs: §"\${{ parameters.x }}"\nnodes: { a: { ${T} } }\n`,
    "Expected an object, found a text",
  ),
];

const nodes: readonly BrokenDocument[] = [
  structural(
    "a node's id that begins with a digit",
    `nodes: { §1a: { ${T} } }`,
    `A node's id is ${NO_ID}, beginning with a letter or \`_\``,
  ),
  one("a node's id that objects have themselves", `nodes: { §constructor: { ${T} } }`, 'A node cannot be called "constructor"'),
  structural("a node without type", `nodes: { §a: { name: x } }`, 'The key "type" is missing'),
  structural("a node that is a text", `nodes: { a: §hello }`, "Expected an object, found a text"),
  one(
    "an unknown type",
    `nodes: { a: { type: §modle } }`,
    'There is no kind of node "modle". Did you mean "model"? Known are agent, attachment, branch, callback, code, fail, http, human_gate, loop, map, model, transform, wait, workflow',
  ),
  structural("an unknown key of a node", node(`{ ${T}, §need: [a] }`), 'There is no key "need": did you mean "needs"?'),
  structural(
    "several unknown keys of a node",
    node(`{ ${T}, §on_error: fail, §foo: 1 }`),
    'There is no key "on_error": did you mean "onError"?',
    'There is no key "foo": there is name, needs, if, retry, timeout, onError, idempotent',
  ),
  structural("needs that are a text", node(`{ ${T}, needs: §a }`), "Expected a list, found a text"),
  structural(
    "a need that is no id",
    node(`{ ${T}, needs: [§a.b.c] }`),
    "A need is the id of a node, or `ID.case` for one of its cases",
  ),
  one("a need that is not there", node(`{ ${T}, needs: [§aa] }`), 'There is no node in this graph "aa": did you mean "a"?'),
  one("a need that is written twice", node(`{ ${T}, needs: [a, §a] }`), '"a" is needed twice'),
  one("a case of a node without cases", node(`{ ${T}, needs: [§a.yes] }`), 'The node "a" is a "transform": it has no cases'),
  one(
    "a case that a branch does not have",
    `nodes:\n  a: { type: branch, with: { cases: { yes: "true" }, else: no_ } }\n  b: { ${T}, needs: [§a.yess] }\n`,
    'There is no case of "a" "yess": did you mean "yes"?',
  ),
  one(
    "a case that a gate does not have",
    `nodes:\n  a: { type: human_gate, with: { title: x } }\n  b: { ${T}, needs: [§a.timeout] }\n`,
    'There is no case of "a" "timeout": there is approve, reject',
  ),
  one("a node that needs itself", node(`{ ${T}, needs: §[b] }`), `${CIRCLE} b → b`),
  one(
    "a circle",
    `nodes:\n  a: { ${T}, needs: §[c] }\n  b: { ${T}, needs: [a] }\n  c: { ${T}, needs: [b] }\n`,
    `${CIRCLE} a → c → b → a`,
  ),
  structural("no attempts", node(`{ ${T}, retry: { attempts: §0 } }`), "There is at least 1 attempt"),
  structural("too many attempts", node(`{ ${T}, retry: { attempts: §101 } }`), "There are at most 100 attempts"),
  structural("half an attempt", node(`{ ${T}, retry: { attempts: §1.5 } }`), "This is a whole number"),
  structural("a retry without attempts", node(`{ ${T}, §retry: { delay: 1s } }`), 'The key "attempts" is missing'),
  structural("a factor below 1", node(`{ ${T}, retry: { attempts: 2, factor: §0.5 } }`), "A factor is 1 to 100"),
  one(
    "a delay of nothing",
    node(`{ ${T}, retry: { attempts: 2, delay: §0s } }`),
    "A duration is more than 0 and at most 366 days",
  ),
  structural("a timeout that is no duration", node(`{ ${T}, timeout: §soon }`), NO_DURATION),
  structural("an unknown onError", node(`{ ${T}, onError: §ignore }`), 'Expected "fail" or "continue", found a text'),
  structural("idempotent that is a text", node(`{ ${T}, idempotent: §"yes" }`), "Expected true or false, found a text"),
  structural("a condition that is a list", node(`{ ${T}, if: §[true] }`), "Expected a text or true or false, found a list"),
];

const given: readonly BrokenDocument[] = [
  structural("with that is missing", `nodes: { §a: { type: fail } }`, 'The key "message" is missing'),
  structural(
    "a key of with that is missing",
    `nodes: { a: { type: agent, §with: { agent: x } } }`,
    'The key "prompt" is missing',
  ),
  one(
    "an unknown key of with",
    `nodes: { a: { type: model, with: { prompt: x, §promt: y } } }`,
    'There is no key "promt": there is provider, model, maxTokens, output',
  ),
  one(
    "an unknown key beside templates",
    `nodes: { a: { type: model, with: { prompt: "\${{ parameters.x }}", §modle: "\${{ parameters.y }}" } } }`,
    'There is no key "modle": did you mean "model"?',
  ),
  one(
    "an unknown key where there are several shapes",
    `nodes: { a: { type: transform, with: { value: "\${{ parameters.x }}", §inputs: 1 } } }`,
    'There is no key "inputs"',
  ),
  one("a value of the wrong kind", `nodes: { a: { type: model, with: { prompt: §[x] } } }`, "Expected a text, found a list"),
  one(
    "a value that is none of those allowed",
    `nodes: { a: { type: http, with: { method: §GTE, url: x } } }`,
    'Expected "GET" or "POST", found a text',
  ),
  one(
    "an output that is no schema",
    `nodes: { a: { type: model, with: { prompt: x, output: §{ type: 3 } } } }`,
    "Invalid JSON Schema: /type must be equal to one of the allowed values",
  ),
  one(
    "what the type itself finds wrong",
    `nodes: { a: { type: model, with: { prompt: x, provider: §gone } } }`,
    "This instance has no provider of this name",
  ),
  one(
    "a type that this instance does not have",
    `nodes: { a: { type: code, with: §{ language: javascript, source: x } } }`,
    "This instance runs no code",
  ),
  structural("a branch without cases", `nodes: { a: { type: branch, with: { cases: §{} } } }`, "There is at least one case"),
  one(
    "a case whose name is none",
    `nodes: { a: { type: branch, with: { cases: { "a b": §"true" } } } }`,
    `The name of a case is ${NO_ID}`,
  ),
  structural(
    "a case that is a list",
    `nodes: { a: { type: branch, with: { cases: { x: §[1] } } } }`,
    "Expected a CEL expression",
  ),
  one("a wait for nothing", `nodes: { a: { type: wait, with: §{} } }`, "A wait has one of `for` and `until`"),
  one(
    "a wait for two things",
    `nodes: { a: { type: wait, with: §{ for: 1s, until: "2030-01-01T00:00:00Z" } } }`,
    "A wait has one of `for` and `until`",
  ),
  one(
    "a wait until a day that does not exist",
    `nodes: { a: { type: wait, with: { until: §"2030-02-30T09:00:00Z" } } }`,
    "This is not a time",
  ),
  structural("a wait for no duration", `nodes: { a: { type: wait, with: { for: §1 hour } } }`, NO_DURATION),
  one(
    "a wait for no time",
    `nodes: { a: { type: wait, with: { until: §tomorrow } } }`,
    "This is not a time: write ISO 8601 with a time zone, such as `2030-01-31T09:00:00Z`",
  ),
  structural(
    "a map without result",
    `nodes: { a: { type: map, §with: { items: "[1]", nodes: { x: { ${T} } } } } }`,
    'The key "result" is missing',
  ),
  structural(
    "a map with too many at a time",
    `nodes: { a: { type: map, with: { items: "[1]", concurrency: §65, result: "1", nodes: { x: { ${T} } } } } }`,
    "Of 1 to 64 elements at a time",
  ),
  structural(
    "a map whose items are an object",
    `nodes: { a: { type: map, with: { items: §{ x: 1 }, result: "1", nodes: { x: { ${T} } } } } }`,
    "Expected a list, found an object",
  ),
  structural(
    "a map without nodes in it",
    `nodes: { a: { type: map, with: { items: "[1]", result: "1", nodes: §{} } } }`,
    "At least one node is required",
  ),
  one(
    "a loop without end",
    `nodes: { a: { type: loop, with: §{ result: "1", nodes: { x: { ${T} } } } } }`,
    "A loop says when it ends: `until`, `maxIterations`, or both",
  ),
  one(
    "what a loop without `until` does after its last iteration",
    `nodes: { a: { type: loop, with: { maxIterations: 2, onExhausted: §complete, result: "1", nodes: { x: { ${T} } } } } }`,
    "`onExhausted` is for a loop with `until`",
  ),
  structural(
    "an unknown end of a loop",
    `nodes: { a: { type: loop, with: { until: "true", onExhausted: §stop, result: "1", nodes: { x: { ${T} } } } } }`,
    'Expected "fail" or "complete", found a text',
  ),
  structural(
    "a loop that turns too often",
    `nodes: { a: { type: loop, with: { maxIterations: §10001, result: "1", nodes: { x: { ${T} } } } } }`,
    "A loop turns 1 to 10,000 times",
  ),
  structural(
    "an unknown decision at the end of a gate",
    `nodes: { a: { type: human_gate, with: { title: x, onTimeout: §skip } } }`,
    'Expected "approve" or "reject", found a text',
  ),
  one(
    "a form that is no schema",
    `nodes: { a: { type: human_gate, with: { title: x, form: §{ required: x } } } }`,
    "Invalid JSON Schema: /required must be array",
  ),
  structural(
    "too many turns of an agent",
    `nodes: { a: { type: agent, with: { agent: x, prompt: y, maxTurns: §101 } } }`,
    "An agent takes 1 to 100 turns",
  ),
  one(
    "an inner node called like one around it",
    `nodes: { a: { type: map, with: { items: "[1]", result: "1", nodes: { §a: { ${T} } } } } }`,
    'An enclosing node is also called "a"',
  ),
  one(
    "a need that reaches out of a map",
    `nodes:\n  a: { ${T} }\n  b: { type: map, with: { items: "[1]", result: "1", nodes: { x: { ${T}, needs: [§a] } } } }\n`,
    'There is no node in this graph "a"',
  ),
];

const expressions: readonly BrokenDocument[] = [
  one(
    "an expression that is none",
    node(`{ ${T}, needs: [a], if: "nodes.a.output ==§" }`),
    "Invalid CEL expression: Unexpected token: EOF",
  ),
  one("an unknown name", node(`{ ${T}, if: "§params.x" }`), 'There is no name "params"'),
  one(
    "an unknown name in a template",
    `nodes: { a: { type: model, with: { prompt: "Hi \${{ §parameter.x }}" } } }`,
    'There is no name "parameter": did you mean "parameters"?',
  ),
  one(
    "an unknown name in a block",
    `nodes:\n  a:\n    type: model\n    with:\n      prompt: |\n        Dear,\n        hello \${{ §foo }}\n`,
    'There is no name "foo"',
  ),
  one(
    "two in one text",
    `nodes: { a: { type: model, with: { prompt: "\${{ §foo }} \${{ run.§ids }}" } } }`,
    'There is no name "foo"',
    'There is no field of `run` "ids": did you mean "id"?',
  ),
  one(
    "a template that is not closed",
    `nodes: { a: { type: model, with: { prompt: "Hi §\${{ parameters.x }" } } }`,
    "This `${{` is not closed by `}}`; a literal one is written `$${{`",
  ),
  one("an empty expression", `nodes: { a: { type: model, with: { prompt: "\${{§ }}" } } }`, "The expression is empty"),
  one("a node that is not there", node(`{ ${T}, if: "nodes.§aa.output" }`), 'There is no node "aa": did you mean "a"?'),
  one(
    "a node that is not before",
    node(`{ ${T}, if: "nodes.§a.output" }`),
    'The node "a" is not before this one: add it to `needs`',
  ),
  one(
    "a node that is not before, in brackets",
    node(`{ ${T}, if: "nodes[§'a'].output" }`),
    'The node "a" is not before this one: add it to `needs`',
  ),
  one("a node itself", `nodes: { a: { ${T}, if: "nodes.§a.output" } }`, 'The node "a" is not before this one: add it to `needs`'),
  one(
    "a computed name of a node",
    node(`{ ${T}, needs: [a], if: "nodes[§parameters.x].output" }`),
    "Name the node: `nodes.ID`; computed names of nodes are refused",
  ),
  one(
    "all nodes",
    node(`{ ${T}, needs: [a], if: "size(§nodes) > 1" }`),
    "Name the node: `nodes.ID`; computed names of nodes are refused",
  ),
  one(
    "an unknown field of a node",
    node(`{ ${T}, needs: [a], if: "nodes.a.§outputs" }`),
    'There is no field of a node "outputs": did you mean "output"?',
  ),
  one(
    "an unknown secret",
    `nodes: { a: { type: model, with: { prompt: "\${{ secrets.§TRACKR }}" } } }`,
    'There is no secret "TRACKR": did you mean "TRACKER"?',
  ),
  one(
    "all secrets",
    `nodes: { a: { type: transform, with: { value: "\${{ §secrets }}" } } }`,
    "Name the secret: `secrets.NAME`; computed names of secrets are refused",
  ),
  one(
    "a computed secret",
    `nodes: { a: { type: transform, with: { value: "\${{ secrets[§parameters.x] }}" } } }`,
    "Name the secret: `secrets.NAME`; computed names of secrets are refused",
  ),
  one(
    "item outside of map",
    `nodes: { a: { type: transform, with: { value: "\${{ §item }}" } } }`,
    "`item` is known inside `map` and `loop` only",
  ),
  one(
    "previous inside map",
    `nodes: { a: { type: map, with: { items: "[1]", result: "§previous", nodes: { x: { ${T} } } } } }`,
    "`previous` is known inside `loop` only",
  ),
  one(
    "item in the items of a map",
    `nodes: { a: { type: map, with: { items: "§item", result: "1", nodes: { x: { ${T} } } } } }`,
    "`item` is known inside `map` and `loop` only",
  ),
  one(
    "an inner node in the items of a map",
    `nodes: { a: { type: map, with: { items: "nodes.§x.output", result: "1", nodes: { x: { ${T} } } } } }`,
    'There is no node "x"',
  ),
  one(
    "an inner node from outside",
    `nodes:\n  a: { type: map, with: { items: "[1]", result: "1", nodes: { x: { ${T} } } } }\n  b: { ${T}, needs: [a], if: "nodes.§x.output" }\n`,
    'There is no node "x"',
  ),
  one(
    "a node beside the map, from within",
    `nodes:\n  b: { ${T} }\n  a: { type: map, with: { items: "[1]", result: "nodes.§b.output", nodes: { x: { ${T} } } } }\n`,
    'The node "b" is not before this one: add it to `needs`',
  ),
  one(
    "an unknown function",
    node(`{ ${T}, if: "§frobnicate(1)" }`),
    "Invalid CEL expression: found no matching overload for 'frobnicate(int)'",
  ),
  one(
    "a sum of a text and a number",
    node(`{ ${T}, if: "§'a' + 1 == 'a1'" }`),
    "Invalid CEL expression: no such overload: string + int",
  ),
  one(
    "a regular expression that is none",
    node(`{ ${T}, if: "parameters.x.matches(§'(')" }`),
    "Invalid regular expression (RE2 syntax: without look-around and back references)",
  ),
  one(
    "a regular expression with look-around",
    node(`{ ${T}, if: "parameters.x.matches(§'(?=a)')" }`),
    "Invalid regular expression (RE2 syntax: without look-around and back references)",
  ),
  one(
    "a key that expressions cannot make",
    `nodes: { a: { type: transform, with: { value: "\${{ {§'__proto__': 1} }}" } } }`,
    'An expression cannot make a key "__proto__"',
  ),
  one(
    "a case that is no expression",
    `nodes: { a: { type: branch, with: { cases: { x: "1 +§" } } } }`,
    "Invalid CEL expression: Unexpected token: EOF",
  ),
  one(
    "an unknown name in outputs",
    `nodes: { a: { ${T} } }\noutputs: { x: "\${{ nodes.§b.output }}" }\n`,
    'There is no node "b": did you mean "a"?',
  ),
];

const flow = (search: string, more = "") =>
  `${more || `parameters: { properties: { order: {}, pin: { writeOnly: true }, card: { properties: { code: { format: password } } } } }\n`}nodes:
  a: { ${T} }
  b: { ${T}, sensitive: [body.token] }
  c: { ${T}, sensitive: true }
outputs:
  done: "\${{ nodes.a.output }}"
  key: { inner: "\${{ secrets.TRACKER }}", other: 1 }
  token: "\${{ nodes.b.output.body.token.size() }}"
  body: "\${{ nodes.b.output.body }}"
  status: "\${{ nodes.b.output.status }}"
  whole: "\${{ nodes.c.output.x }}"
  ended: "\${{ nodes.c.status }}"
search: ${search}
`;
const SECRET_PARAMETER = "A secret parameter (`writeOnly` or `format: password`) cannot be searched";
const A_FIELD = "A field is 1-5 keys with dots between them, such as `customer.id`; a key is 1-64 letters, digits, `_` and `-`";

const search: readonly BrokenDocument[] = [
  one(
    "a searched parameter that is not declared",
    flow("{ parameters: [order, §custmer] }"),
    '`parameters` has no property "custmer"',
  ),
  one(
    "searched parameters without a schema",
    flow("{ parameters: [§order] }", "id: a\n"),
    '`parameters` has no property "order"',
  ),
  one("a searched parameter that is secret", flow("{ parameters: [§pin, §card.code] }"), SECRET_PARAMETER, SECRET_PARAMETER),
  one("a searched output that does not exist", flow("{ outputs: [done, §dones] }"), '`outputs` has no key "dones"'),
  one(
    "a searched output that is secret",
    flow("{ outputs: [§key.inner, key.other, §token, §body, status, §whole, ended] }"),
    "A secret output cannot be searched: it reads `secrets.TRACKER`",
    'A secret output cannot be searched: it reads a sensitive output of "b"',
    'A secret output cannot be searched: it reads a sensitive output of "b"',
    'A secret output cannot be searched: it reads a sensitive output of "c"',
  ),
  structural("a searched field that is no path", flow("{ parameters: [§order..id, §'a b', §'*'] }"), A_FIELD, A_FIELD, A_FIELD),
  structural("too many searched fields", flow("{ parameters: §[a, b, c, d, e, f, g, h, i] }"), "There are at most 8 fields"),
  one("a searched field that is named twice", flow("{ outputs: §[done, done] }"), "Each field is named once"),
  structural(
    "an unknown part of the search",
    flow("{ §inputs: [order] }"),
    'There is no key "inputs": there is parameters, outputs',
  ),
];

const keyed = (key: string) => `
id: a
parameters:
  type: object
  properties:
    order: { type: string }
    pin: { type: string, writeOnly: true }
    card: { type: object, properties: { code: { type: string, format: password }, name: { type: string } } }
    mixed: { allOf: [{ properties: { pin: { type: string, writeOnly: true } } }] }
nodes: { a: { type: transform, with: { value: 1 } } }
${key}
`;
const SECRET_KEY = "A key cannot read a secret parameter (`writeOnly` or `format: password`)";

const startKeys: readonly BrokenDocument[] = [
  ...[
    "parameters.pin",
    "parameters.card",
    "parameters.card.code",
    "parameters",
    "parameters.order + parameters['pin']",
    "parameters.mixed.pin",
  ].flatMap((read) => [
    one(`a key of concurrency that reads ${read}`, keyed(`concurrency: { limit: 1, key: §"\${{ ${read} }}" }`), SECRET_KEY),
    one(`a key of debounce that reads ${read}`, keyed(`debounce: { delay: 5s, key: §"\${{ ${read} }}" }`), SECRET_KEY),
  ]),
  one(
    "a key without an expression",
    keyed("concurrency: { limit: 1, key: §order }"),
    "A key names parameters, such as `${{ parameters.customer }}`",
  ),
  one(
    "a longest wait that is shorter than the delay",
    keyed('debounce: { delay: 5s, maxWait: §1s, key: "${{ parameters.card.name }}" }'),
    "The longest wait is 1 to 1000 delays",
  ),
];

export const brokenDocuments: readonly BrokenDocument[] = [
  ...search,
  ...startKeys,
  ...schedules,
  ...text,
  ...document,
  ...nodes,
  ...given,
  ...expressions,
];
