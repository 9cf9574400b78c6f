import { systemClock } from "@portico/adapters/clock/system";
import { transformNode } from "@portico/workflow-nodes/transform";
import { ports } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openNode, type OpenNode } from "../../../harness/run-node.ts";
import { turnsDuring } from "../../../harness/turns-during.ts";

let node: OpenNode;
/** One that gives an expression less time, for those that would use all of it. */
let hasty: OpenNode;
beforeAll(async () => {
  node = await openNode(transformNode({}), [systemClock()]);
  hasty = await openNode(transformNode({ cpuMs: 200 }), [systemClock()]);
});
afterAll(async () => {
  await node[Symbol.asyncDispose]();
  await hasty[Symbol.asyncDispose]();
});

const evaluate = (jsonata: string, input?: unknown) => node.run({ jsonata, ...(input !== undefined && { input }) });
const faults = (jsonata: string) => node.check({ jsonata }).map(({ path, message }) => [path.join("."), message]);

describe("transform: value", () => {
  it("is returned unchanged", async () => {
    const value = { a: [1, null, "x"] };
    expect(await node.run({ value })).toBe(value);
    expect(await node.run({ value: null })).toBeNull();
  });

  it("must be the only field, and an empty `with` is refused", () => {
    for (const written of [{}, { value: 1, jsonata: "a" }, { value: 1, input: 1 }, { input: 1 }])
      expect(node.check(written)).toHaveLength(1);
  });
});

describe("transform: jsonata", () => {
  it("answers the expression's result for the input", async () => {
    const input = {
      items: [
        { price: 2, n: 3 },
        { price: 5, n: 1 },
      ],
    };
    expect(await evaluate("$sum(items.(price * n))", input)).toBe(11);
    expect(await evaluate("items[price > 2]", input)).toEqual({ price: 5, n: 1 });
    expect(await evaluate('{ "count": $count(items) }', input)).toEqual({ count: 2 });
    expect(await evaluate("$", [1, 2])).toEqual([1, 2]);
    expect(await evaluate("1 + 1")).toBe(2);
    expect(await evaluate("$base64decode($base64encode(a)) & $base64encode('abcd')", { a: "hi" })).toBe("hiYWJjZA==");
  });

  it.each(["$number(a)", "9007199254740993", "[{ 'id': $number(a) }]", "-$number(a)", "$number(a & '0000')"])(
    "fails with a whole number whose digits are not exact: %s",
    async (jsonata) => {
      const { code, message } = await node.failure({ jsonata, input: { a: "9007199254740993" } });
      expect([code, message]).toEqual(["transform_failed", expect.stringContaining("whole number beyond")]);
    },
  );

  it("keeps the digits of texts, and numbers with decimals", async () => {
    const jsonata = "[a, 9007199254740991, 0.1 + 0.2]";
    expect(await evaluate(jsonata, { a: "9007199254740993" })).toEqual(["9007199254740993", 9_007_199_254_740_991, 0.1 + 0.2]);
  });

  it("returns null if nothing is found, and for results that are not JSON", async () => {
    expect(await evaluate("a.b", {})).toBeNull();
    expect(await evaluate("$sum")).toBeNull();
    expect(await evaluate("a", { a: null })).toBeNull();
  });

  it("reports syntax errors at load, with their position", () => {
    expect(faults("a.b + 1")).toEqual([]);
    expect(faults("{\n  'a': (1 + \n}")).toEqual([["jsonata", expect.stringMatching(/^line 3, column \d+: /)]]);
    expect(faults("(".repeat(50_000))).toHaveLength(1);
    expect(faults('"open')[0]![1]).toMatch(/^line 1, column \d+: /);
  });

  it("fails with the place and without values of the input", async () => {
    const error = await node.failure({ jsonata: "\n$number(a)", input: { a: "hidden-word" } });
    expect([error.code, error.retryable]).toEqual(["transform_failed", false]);
    expect(error.message).toMatch(/^line 2, column 9: Unable to cast value to a number/);
    expect(error.message).not.toContain("hidden-word");
  });
});

describe("transform: the same result each time", () => {
  it.each([
    "$now()",
    "a.$millis()",
    "$random() > 0.5",
    "$map(a, $shuffle)",
    "a ~> |b|{'c': $now()}|",
    "($f := function(){ $random() }; 1)",
  ])("refuses %s when it is loaded", (jsonata) => {
    expect(faults(jsonata)).toEqual([
      ["jsonata", expect.stringMatching(/^\$(?:now|millis|random|shuffle) gives another result each time/)],
    ]);
  });

  it.each(["$now()", "$millis()", "$random()", "$shuffle([1,2,3])"])("refuses %s where $eval brings it", async (inner) => {
    const error = await node.failure({ jsonata: "$eval(code)", input: { code: inner } });
    expect([error.code, error.message]).toEqual(["transform_failed", expect.stringMatching(/each time/)]);
  });

  it("knows no today", async () => {
    expect(await evaluate('$toMillis("10:00", "[H01]:[m01]")')).toBe(10 * 3_600_000);
  });
});

describe("transform: prototypes", () => {
  it.each([
    ...[
      "a.__proto__",
      "a.constructor",
      '"x".constructor',
      "$sum.constructor",
      '$lookup(a, "__proto__")',
      '$lookup(a, "constructor")',
    ],
    ...["[1].length", "a.toString", "$.**.constructor", '("x").(constructor)', "$lookup([{}], 'constructor')"],
  ])("%s is nothing", async (jsonata) => {
    expect(await evaluate(jsonata, { a: { b: 1 } })).toBeNull();
  });

  it.each([
    '{"__proto__": {"polluted": 1}}',
    '$merge([a, {"__proto__": {"polluted": 1}}])',
    'a ~> |$|{"__proto__": {"polluted": 1}}|',
    '$eval("{\\"__proto__\\": {\\"polluted\\": 1}}")',
    "$spread(a) ~> $merge()",
    'a{"__proto__": {"polluted": 1}}',
  ])("%s leaves nothing for the next evaluation", async (jsonata) => {
    await evaluate(jsonata, JSON.parse('{"a":{"b":1,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}'));
    expect(await evaluate("[{}.polluted, a.polluted, [].polluted]", { a: {} })).toEqual([]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("transform: limits", () => {
  const endless: readonly (readonly [string, string, unknown?])[] = [
    ["endless recursion", "($f := function($n){ 1 + $f($n) }; $f(1))"],
    ["endless tail recursion", "($f := function(){ $f() }; $f())"],
    ["a long range", "[1..1e9]"],
    ["ranges within ranges", "[1..1000000].([1..1000000].$)"],
    ["$map over a long range", "$map([1..1000000], function($x){ $x * 2 })"],
    ["backtracking of a regular expression", "$match(a, /^(a+)+$/)", { a: `${"a".repeat(40)}!` }],
    ["backtracking in $replace", "$replace(a, /(x+x+)+y/, '')", { a: "x".repeat(40) }],
    ["a string that doubles", "($f := function($s, $n){ $n < 1 ? $s : $f($s & $s, $n - 1) }; $length($f('x', 29)))"],
    ["a result that doubles", "($f := function($s, $n){ $n < 1 ? $s : $f($s & $s, $n - 1) }; $f('x', 24))"],
    ["$pad", "$length($pad('x', 400000000))"],
    ["arrays that double", "($f := function($s, $n){ $n < 1 ? $s : $f($append($s, $s), $n - 1) }; $count($f([1..1000], 30)))"],
    ["objects that double", "($f := function($s, $n){ $n < 1 ? $s : $f([$s, $s], $n - 1) }; $string($f('x', 40)))"],
    ["sorting badly", "$sort([1..1000000], function($a, $b){ $a < $b })"],
    ["nested evaluation", "($f := function($n){ $eval('$f($n)') }; $f(1))"],
  ];

  it.each(endless)(
    "end %s with a failure that no retry helps, while the event loop goes on",
    async (_name, jsonata, input = {}) => {
      expect(node.check({ jsonata })).toEqual([]);
      const { turns, outcome } = await turnsDuring(() => hasty.failure({ jsonata, input }));
      // A loop that holds the event loop up would let it round once at most.
      if (outcome.code === "transform_timeout") expect(turns).toBeGreaterThan(5);
      expect(outcome.retryable).toBe(false);
      expect(["transform_failed", "transform_timeout", "transform_memory", "transform_too_large"]).toContain(outcome.code);
      expect(outcome.message.length).toBeLessThan(300);
      // An expression that exceeded its time does not block the next one.
      expect(await evaluate("a", { a: 1 })).toBe(1);
    },
  );

  it("let a result through of which the JSON is as large as an output may be, and no larger", async () => {
    const largest = ports.NODE_OUTPUT_BYTES - 2;
    expect(await evaluate("a", { a: "x".repeat(largest) })).toHaveLength(largest);
    expect((await node.failure({ jsonata: "a", input: { a: "x".repeat(largest + 1) } })).code).toBe("transform_too_large");
    expect((await node.failure({ jsonata: "a", input: { a: "é".repeat(largest / 2 + 1) } })).code).toBe("transform_too_large");
  });

  it("let recursion through that ends", async () => {
    expect(await evaluate("($f := function($n){ $n < 1 ? 0 : 1 + $f($n - 1) }; $f(200))")).toBe(200);
  });

  it("end an aborted evaluation, and continue with the ones that wait", async () => {
    const stopping = new AbortController();
    const reason = new Error("the run was cancelled");
    const stopped = node.run(
      { jsonata: "$match(a, /^(a+)+$/)", input: { a: `${"a".repeat(40)}!` } },
      { signal: stopping.signal },
    );
    const next = [1, 2, 3].map((n) => evaluate("a + 1", { a: n }));
    const leaving = new AbortController();
    const left = node.run({ jsonata: "a", input: { a: 1 } }, { signal: leaving.signal });
    leaving.abort(reason);
    await expect(left).rejects.toBe(reason);
    setTimeout(() => stopping.abort(reason), 100);
    await expect(stopped).rejects.toBe(reason);
    expect(await Promise.all(next)).toEqual([2, 3, 4]);
  });

  it("end with the service", async () => {
    const own = await openNode(transformNode({ cpuMs: 300 }), [systemClock()]);
    const running = own.run({ jsonata: "$match(a, /^(a+)+$/)", input: { a: `${"a".repeat(40)}!` } }).catch(() => "ended");
    await own[Symbol.asyncDispose]();
    expect(await running).toBe("ended");
    await expect(own.run({ jsonata: "1" })).rejects.toThrow("closed");
  });
});
