import { defineWorkflowNode, hasAtMost, maxCharacters, ports } from "@portico/core";
import * as v from "valibot";
import { readOutcome } from "./sandbox/read-outcome.ts";
import { createSandboxThreads } from "./sandbox/sandbox-threads.ts";
import { jsonataFaults, placeOf } from "./transform/jsonata-syntax.ts";
import { JSONATA_CHARACTERS, TRANSFORM_CPU_MS, TRANSFORM_MEMORY_MB, type TransformJob } from "./transform/transform-limits.ts";

const input = v.union([
  v.strictObject({
    value: v.pipe(v.unknown(), v.description("Any JSON with expressions, which becomes the output: this, or `jsonata`.")),
  }),
  v.strictObject({
    jsonata: v.pipe(
      v.string(),
      v.minLength(1),
      maxCharacters(JSONATA_CHARACTERS),
      v.description("A [JSONata](https://jsonata.org) expression, instead of `value`. Its result is the output."),
    ),
    input: v.optional(v.pipe(v.unknown(), v.description("Input of `jsonata`."))),
  }),
]);

/** Options of `transformNode`. */
export interface TransformNodeOptions {
  /** Limit of processor time for one JSONata expression. Default: 2,000. */
  readonly cpuMs?: number;
  /** Maximum number of threads, apart from eight for slow expressions. Default: one for each processor. */
  readonly threads?: number | undefined;
}

type TransformInput = v.InferOutput<typeof input>;

const worker = () => new URL(import.meta.resolve("#transform-worker"));

/**
 * Nodes that compute a value: `value` with its expressions evaluated, or the result of a JSONata expression on `input`. JSONata
 * runs in sandboxes in threads beside the event loop, for at most two seconds and in 64 MB.
 */
export const transformNode = defineWorkflowNode({
  name: "workflow-nodes/transform",
  needs: { clock: ports.clock },
  rules: (): ports.NodeRules<TransformInput> => ({
    type: "transform",
    input,
    keys: { jsonata: "verbatim" },
    repeatable: true,
    pure: true,
    check: faultsOf,
  }),
  open({ clock }, { cpuMs = TRANSFORM_CPU_MS, threads }: TransformNodeOptions, scope) {
    const limits = { cpuMs, memoryBytes: TRANSFORM_MEMORY_MB * 1024 * 1024 };
    const running = createSandboxThreads<TransformJob>({ name: "portico-transform", module: worker, limits, threads }, clock);
    scope.onClose(() => running.close());
    return {
      async run({ input, signal }: ports.NodeWork<TransformInput>) {
        signal.throwIfAborted();
        if ("value" in input) return input.value;
        const { jsonata } = input;
        const json = input.input === undefined ? undefined : JSON.stringify(input.input);
        return readOutcome(await running.run({ jsonata, input: json }, signal), {
          code: "transform",
          subject: "The expression",
          limits,
          place: (position) => (position === "" ? "" : placeOf(jsonata, Number(position))),
        });
      },
    };
  },
});

function faultsOf(written: Readonly<Record<string, unknown>>): ports.NodeFault[] {
  const hasValue = Object.hasOwn(written, "value");
  const hasJsonata = Object.hasOwn(written, "jsonata");
  if (hasValue === hasJsonata) return [{ path: [], message: "A transform has either value, or jsonata and input" }];
  if (hasValue && Object.hasOwn(written, "input")) return [{ path: ["input"], message: "input belongs to jsonata" }];
  const { jsonata } = written;
  return typeof jsonata === "string" && hasAtMost(JSONATA_CHARACTERS, jsonata) ? jsonataFaults(jsonata) : [];
}
