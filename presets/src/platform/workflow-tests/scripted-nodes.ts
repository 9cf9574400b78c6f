import { type Adapter, defineWorkflowNode, ports } from "@portico/core";
import { EXECUTED_IN_CASES } from "@portico/plugins/workflow-service/client";
import { codeNode, transformNode } from "../workflow-nodes-package.ts";
import type { NodeAnswer, TestCase } from "./case-file.ts";

/** Types that compute only from their input, or control the run: a case executes them. All others get answers of the case. */
export const EXECUTED: ReadonlySet<string> = new Set([...EXECUTED_IN_CASES, "callback", "human_gate"]);

/** The id of a node without positions: `pages.short` of `pages[3].short`. */
export function idWithoutPlaces(nodeId: string): string {
  return nodeId.replace(/\[\d+\]/g, "");
}

/** What a case says about a node: at its place, or for all places. */
export function ofNode<T>(said: Readonly<Record<string, T>>, nodeId: string): T | undefined {
  return said[nodeId] ?? said[idWithoutPlaces(nodeId)];
}

/** The one of an attempt. The last is repeated. */
export function ofAttempt<T>(said: T | readonly T[], attempt: number): T {
  const all = Array.isArray(said) ? (said as readonly T[]) : [said as T];
  return all[Math.min(attempt, all.length) - 1]!;
}

/** The nodes of a service in which each node with effects gets its answer from the case. `missed` is called for nodes without an answer. */
export function scriptedNodes(
  types: ReadonlyMap<string, ports.NodeRules>,
  { nodes, gates, callbacks }: TestCase,
  missed: (nodeId: string) => void,
  threads?: number,
): readonly Adapter[] {
  const answerOf = (nodeId: string, attempt: number): NodeAnswer => {
    const found = ofNode(nodes, nodeId);
    if (found === undefined) {
      // The request of a gate or a callback needs no answer. A case can let it fail.
      if (ofNode<unknown>(gates, nodeId) !== undefined || ofNode<unknown>(callbacks, nodeId) !== undefined)
        return { output: null };
      missed(nodeId);
      throw new ports.NodeFailed("no_answer", "The case has no answer for this node", { retryable: false });
    }
    return ofAttempt(found, attempt);
  };
  const scripted = [...types.values()].filter(({ type }) => !EXECUTED.has(type)).map((rules) => scriptedNode(rules, answerOf));
  const sandbox = threads === undefined ? {} : { threads };
  return [codeNode(sandbox), transformNode(sandbox), ...scripted];
}

function scriptedNode(given: ports.NodeRules, answerOf: (nodeId: string, attempt: number) => NodeAnswer): Adapter {
  const { type, input, keys, cases, check } = given;
  const rules = { type, input, ...(keys && { keys }), ...(cases && { cases }), ...(check && { check }), repeatable: true };
  return defineWorkflowNode({
    name: `workflow-nodes/scripted-${type}`,
    needs: {},
    rules: () => rules,
    open: () => ({
      async run({ step: { nodeId, attempt } }: ports.NodeWork<unknown>) {
        const answer = answerOf(nodeId, attempt);
        if ("output" in answer) return answer.output;
        const { code, message, retryable, status, body } = answer.error;
        throw new ports.NodeFailed(code, message, { retryable, ...(status !== undefined && { answer: { status, body } }) });
      },
    }),
  })();
}
