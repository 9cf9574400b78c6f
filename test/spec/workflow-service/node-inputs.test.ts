import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const given = "${{ parameters.given }}";
const value = (output: unknown, more: object = {}) => ({ type: "transform", with: { value: output }, ...more });
const inner = { n: value("${{ index }}") };
const of = (node: object) => ({ nodes: { a: node }, outputs: { a: "${{ has(nodes.a.output) ? nodes.a.output : 'none' }}" } });
const definitions = {
  "concurrency.json": of({ type: "map", with: { items: "[1, 2]", concurrency: given, nodes: inner, result: "nodes.n.output" } }),
  "items.json": of({ type: "map", with: { items: "parameters.given", nodes: inner, result: "nodes.n.output" } }),
  "turns.json": of({ type: "loop", with: { maxIterations: given, nodes: inner, result: "nodes.n.output" } }),
  "message.json": of({ type: "fail", with: { message: given } }),
  "if.json": of(value("done", { if: "parameters.given" })),
  "until.json": of({ type: "loop", with: { until: "parameters.given", nodes: inner, result: "nodes.n.output" } }),
  "case.json": of({ type: "branch", with: { cases: { yes: "parameters.given" }, else: "no" } }),
};

let service: WorkflowService;
beforeAll(async () => void (service = await startWorkflowService({ definitions })));
afterAll(() => service.close());

async function ended(workflowId: string, parameters: object) {
  return service.ended(workflowId, await service.trigger(workflowId, parameters));
}

describe('what a template comes to is held against the node\'s schema (workflow definitions, "Kinds of nodes")', () => {
  it.each([
    ["concurrency", 0, "with.concurrency: Of 1 to 64 elements at a time"],
    ["concurrency", -1, "with.concurrency: Of 1 to 64 elements at a time"],
    ["concurrency", 65, "with.concurrency: Of 1 to 64 elements at a time"],
    ["concurrency", 1.5, "with.concurrency: This is a whole number"],
    ["concurrency", "secretive", "with.concurrency: Expected a number, found a text"],
    ["concurrency", null, "with.concurrency: Expected a number, found nothing"],
    ["items", "secretive", "with.items: Expected a list, found a text"],
    ["items", null, "with.items: Expected a list, found nothing"],
    ["turns", 0, "with.maxIterations: A loop turns 1 to 10,000 times"],
    ["turns", -1, "with.maxIterations: A loop turns 1 to 10,000 times"],
    ["turns", 10_001, "with.maxIterations: A loop turns 1 to 10,000 times"],
    ["turns", "secretive", "with.maxIterations: Expected a number, found a text"],
    ["turns", null, "with.maxIterations: Expected a number, found nothing"],
    ["message", 1, "with.message: Expected a text, found a number"],
  ])("%s: %j fails the node, and what was found is named without its value", async (workflowId, bad, message) => {
    expect(await ended(workflowId, { given: bad })).toMatchObject({
      status: "failed",
      error: { code: "invalid_input", message, nodeId: "a" },
    });
  });

  it("and what fits is taken", async () => {
    expect(await ended("concurrency", { given: 64 })).toMatchObject({ status: "completed", finalOutputs: { a: [0, 1] } });
    expect(await ended("turns", { given: 3 })).toMatchObject({ status: "completed", finalOutputs: { a: 2 } });
  });
});

describe('a condition is true or false (workflow definitions, "Expressions")', () => {
  it.each([
    ["if", "secretive", "a text"],
    ["if", null, "null"],
    ["if", 1, "a number"],
    ["if", [], "a list"],
    ["until", "secretive", "a text"],
    ["until", null, "null"],
    ["case", 0, "a number"],
    ["case", {}, "an object"],
  ])("%s: %j fails the node, and what was found is named without its value", async (workflowId, bad, found) => {
    expect(await ended(workflowId, { given: bad })).toMatchObject({
      status: "failed",
      error: {
        code: "expression_failed",
        message: `The expression \`parameters.given\` failed: expected true or false, found ${found}`,
        nodeId: "a",
      },
    });
  });

  it("and decides where it is", async () => {
    expect(await ended("if", { given: true })).toMatchObject({ finalOutputs: { a: "done" } });
    expect(await ended("if", { given: false })).toMatchObject({ finalOutputs: { a: "none" } });
    expect(await ended("until", { given: false })).toMatchObject({ error: { code: "loop_exhausted" } });
    expect(await ended("case", { given: false })).toMatchObject({ finalOutputs: { a: { case: "no" } } });
  });
});
