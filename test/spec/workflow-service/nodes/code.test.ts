import { systemClock } from "@portico/adapters/clock/system";
import { codeNode } from "@portico/workflow-nodes/code";
import { ports } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { turnsDuring } from "../../../harness/turns-during.ts";
import { openNode, type OpenNode } from "../../../harness/run-node.ts";

let node: OpenNode;
/** One that gives a script less time, for scripts that would use all of it. */
let hasty: OpenNode;
beforeAll(async () => {
  node = await openNode(codeNode({}), [systemClock()]);
  hasty = await openNode(codeNode({ cpuMs: 200 }), [systemClock()]);
});
afterAll(async () => {
  await node[Symbol.asyncDispose]();
  await hasty[Symbol.asyncDispose]();
});

const run = (source: string, input?: unknown) => node.run({ source, ...(input !== undefined && { input }) });
const failure = async (source: string, input?: unknown) => {
  const { code, message, retryable } = await node.failure({ source, ...(input !== undefined && { input }) });
  expect(retryable).toBe(false);
  return [code, message];
};

describe("code: the script", () => {
  it("is a function's body with its input, whose result is the output", async () => {
    expect(await run("return input.items.map((n) => n * 2)", { items: [1, 2] })).toEqual([2, 4]);
    expect(await run("const { a = 1 } = input ?? {};\nreturn { a }")).toEqual({ a: 1 });
    expect(await run("return typeof input")).toBe("undefined");
    expect(await run('return "é🎉\\u0000"')).toBe("é🎉\u0000");
  });

  it("returns null if it returns nothing, or a value that is not JSON", async () => {
    expect(await run("input")).toBeNull();
    expect(await run("return () => 1")).toBeNull();
    expect(await run("return [undefined, NaN]")).toEqual([null, null]);
  });

  it("may wait for its own promises", async () => {
    expect(await run("const a = await Promise.all([1, Promise.resolve(2)]); return a")).toEqual([1, 2]);
    expect((await failure("await new Promise(() => {})"))[1]).toMatch(/waits for something that never comes/);
  });

  it("console output is discarded", async () => {
    expect(await run("console.log(input); console.error('x'); return 1", { a: 1 })).toBe(1);
  });

  it("is refused for its syntax when it is loaded, with the line", () => {
    const faults = (source: string) => node.check({ source }).map(({ path, message }) => [path.join("."), message]);
    expect(faults("return await input")).toEqual([]);
    expect(faults("const a = 1;\nconst a = 2;")).toEqual([["source", "line 2: Identifier 'a' has already been declared"]]);
    expect(faults("if (input) {")).toEqual([["source", expect.stringMatching(/^line 1: /)]]);
    expect(faults("with (input) {}")).toHaveLength(1);
  });

  it("fails with its own words, and the line", async () => {
    expect(await failure('\n\nthrow new Error("No price")')).toEqual(["code_failed", "line 3: No price"]);
    expect(await failure("const f = () => nothing;\nreturn f()")).toEqual(["code_failed", "line 1: 'nothing' is not defined"]);
    expect(await failure('throw "words"')).toEqual(["code_failed", "words"]);
    expect((await failure("throw null"))[0]).toMatch(/^code_/);
    expect((await failure("const a = {}; a.a = a; return a"))[1]).toMatch(/circular/);
    expect((await failure('throw new Error("x".repeat(1e5))'))[1]!.length).toBeLessThan(2_000);
  });
});

describe("code: the sandbox", () => {
  it("has nothing of the host", async () => {
    const names = [
      "process",
      "require",
      "fetch",
      "setTimeout",
      "WebAssembly",
      "Deno",
      "Bun",
      "std",
      "os",
      "scriptArgs",
      "navigator",
      "Worker",
    ];
    expect(await run(`return ${JSON.stringify(names)}.filter((name) => name in globalThis)`)).toEqual([]);
    expect(await run("return typeof input.constructor.constructor('return this')().process", {})).toBe("undefined");
    expect((await failure("return (await import('node:fs')).readdirSync('/')"))[0]).toBe("code_failed");
  });

  it("keeps nothing from one script to the next", async () => {
    await run("globalThis.left = 1; Object.prototype.left = 1; Array.prototype.map = () => 'mine'; JSON.stringify = () => '1'");
    expect(await run("return [typeof left, ({}).left ?? null, [1].map((n) => n)]")).toEqual(["undefined", null, [1]]);
  });

  it.each<readonly [string, string, string]>([
    ["a loop", "for (;;);", "code_timeout"],
    ["a loop of promises", "for (;;) await null;", "code_timeout"],
    ["promises that follow each other", "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})", "either"],
    ["a regular expression", "return /^(a+)+$/.test('a'.repeat(40) + '!')", "code_timeout"],
    ["one long step of the engine's own", "return [1].concat(Array(4e9)).indexOf(2)", "code_timeout"],
    ["a getter of what it throws", "throw { get message() { for (;;); } }", "code_timeout"],
    ["a result that is computed while it is read", "return { toJSON() { for (;;); } }", "code_timeout"],
    ["a lot of memory", "const all = []; for (;;) all.push(new Uint8Array(1e6))", "code_memory"],
    ["a long text", "return 'x'.repeat(1e9)", "code_memory"],
    ["a large result", `return 'x'.repeat(${ports.NODE_OUTPUT_BYTES})`, "code_too_large"],
    ["endless recursion", "const f = () => 1 + f(); return f()", "code_failed"],
    ["deep nesting", "return JSON.parse('['.repeat(1e5))", "code_failed"],
    ["deep source", `return ${"(".repeat(50_000)}`, "code_failed"],
  ])("ends %s, and the event loop goes on meanwhile", async (_name, source, code) => {
    const isSlow = code === "code_timeout" || code === "either";
    const { turns, outcome } = await turnsDuring(() => (isSlow ? hasty : node).failure({ source }));
    // A loop that holds the event loop up would let it round once at most.
    if (isSlow) expect(turns).toBeGreaterThan(5);
    // Promises also take memory: on a busy machine, the memory limit is reached before the time limit.
    const codes = code === "either" ? ["code_timeout", "code_memory"] : [code];
    expect(codes).toContain(outcome.code);
    expect(outcome.retryable).toBe(false);
    expect(outcome.message).not.toContain("xxxxxxxx");
    // An ended script does not block the next one.
    expect(await (isSlow ? hasty : node).run({ source: "return input", input: 1 })).toBe(1);
  });

  it("gives as much as an output may have", async () => {
    const length = ports.NODE_OUTPUT_BYTES - 2;
    expect(await run(`return 'x'.repeat(${length})`)).toHaveLength(length);
  });

  it("stops an aborted script, and continues with the waiting ones", async () => {
    const stopping = new AbortController();
    const reason = new Error("the run was cancelled");
    const stopped = node.run({ source: "for (;;);" }, { signal: stopping.signal });
    const next = [1, 2].map((n) => run("return input", n));
    setTimeout(() => stopping.abort(reason), 50);
    await expect(stopped).rejects.toBe(reason);
    expect(await Promise.all(next)).toEqual([1, 2]);
  });

  it("may be run again after a crash, and is not computed instead of remembered", () => {
    expect([node.node.repeatable, node.node.pure ?? false]).toEqual([true, false]);
  });
});
