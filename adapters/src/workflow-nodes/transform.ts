import { defineAdapter, ports } from "@portico/core";
import * as v from "valibot";
import { readOutcome } from "./sandbox/read-outcome.ts";
import { createSandboxThread } from "./sandbox/sandbox-thread.ts";
import { jsonataFaults, placeOf } from "./transform/jsonata-syntax.ts";
import { JSONATA_CHARACTERS, TRANSFORM_CPU_MS, TRANSFORM_MEMORY_MB, type TransformJob } from "./transform/transform-limits.ts";

const input = v.union([
  v.strictObject({
    value: v.pipe(v.unknown(), v.description("Any JSON with expressions in it, which is the output: this, or `jsonata`.")),
  }),
  v.strictObject({
    jsonata: v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(JSONATA_CHARACTERS),
      v.description("A [JSONata](https://jsonata.org) expression, in place of `value`: what it gives is the output."),
    ),
    input: v.optional(v.pipe(v.unknown(), v.description("What `jsonata` is evaluated on."))),
  }),
]);

export interface TransformNodeOptions {
  /** Of the processor's time, for one JSONata expression; default 2,000. */
  readonly cpuMs?: number;
}

type TransformInput = v.InferOutput<typeof input>;

const WORKER = new URL(import.meta.resolve("#transform-worker"));

/**
 * Nodes that compute a value: `value` as its expressions give it, or what a JSONata expression makes of `input`. JSONata runs in a sandbox
 * in a thread beside the event loop, for two seconds and in 64 MB at most, one expression after another.
 */
export const transformNode = defineAdapter({
  name: "workflow-nodes/transform",
  port: ports.workflowNodes,
  needs: { clock: ports.clock },
  open({ clock }, { cpuMs = TRANSFORM_CPU_MS }: TransformNodeOptions, scope): ports.WorkflowNode<TransformInput> {
    const limits = { cpuMs, memoryBytes: TRANSFORM_MEMORY_MB * 1024 * 1024 };
    const thread = createSandboxThread<TransformJob>("portico-transform", WORKER, limits, clock);
    scope.onClose(() => thread.close());
    return {
      type: "transform",
      input,
      keys: { jsonata: "verbatim" },
      repeatable: true,
      pure: true,
      check: faultsOf,
      async run({ input, signal }) {
        signal.throwIfAborted();
        if ("value" in input) return input.value;
        const { jsonata } = input;
        const json = input.input === undefined ? undefined : JSON.stringify(input.input);
        return readOutcome(await thread.run({ jsonata, input: json }, signal), {
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
  return typeof jsonata === "string" && jsonata.length <= JSONATA_CHARACTERS ? jsonataFaults(jsonata) : [];
}
