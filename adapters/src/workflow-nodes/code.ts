import { defineAdapter, ports } from "@portico/core";
import * as v from "valibot";
import { type CodeJob, placeIn, scriptFaults } from "./code/script.ts";
import { readOutcome } from "./sandbox/read-outcome.ts";
import { createSandboxThread } from "./sandbox/sandbox-thread.ts";

export interface CodeNodeOptions {
  /** Of the processor's time, for one script; default 1,000. */
  readonly cpuMs?: number;
}

const SOURCE_CHARACTERS = 256 * 1024;

const input = v.strictObject({
  language: v.optional(v.pipe(v.literal("javascript"), v.description("There is no other.")), "javascript"),
  source: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(SOURCE_CHARACTERS),
    v.description("Body of a function: `input` is in scope, and what it returns is the output."),
  ),
  input: v.optional(v.pipe(v.unknown(), v.description("What `source` works on."))),
});

type CodeInput = v.InferOutput<typeof input>;

const CPU_MS = 1_000;
const MEMORY_BYTES = 32 * 1024 * 1024;

const WORKER = new URL(import.meta.resolve("#code-worker"));

/**
 * Nodes that run a script: in QuickJS, which knows nothing but the language, in a thread beside the event loop, for a second and in 32 MB at
 * most, one script after another.
 */
export const codeNode = defineAdapter({
  name: "workflow-nodes/code",
  port: ports.workflowNodes,
  needs: { clock: ports.clock },
  open({ clock }, { cpuMs = CPU_MS }: CodeNodeOptions, scope): ports.WorkflowNode<CodeInput> {
    const limits = { cpuMs, memoryBytes: MEMORY_BYTES };
    const thread = createSandboxThread<CodeJob>("portico-code", WORKER, limits, clock);
    scope.onClose(() => thread.close());
    return {
      type: "code",
      input,
      keys: { source: "verbatim" },
      // Time and chance are in the language: the same script may give another result.
      repeatable: true,
      check: ({ source }) => (typeof source === "string" && source.length <= SOURCE_CHARACTERS ? scriptFaults(source) : []),
      async run({ input: { source, input }, signal }) {
        signal.throwIfAborted();
        const json = input === undefined ? undefined : JSON.stringify(input);
        const outcome = await thread.run({ source, input: json }, signal);
        return readOutcome(outcome, { code: "code", subject: "The script", limits, place: placeIn });
      },
    };
  },
});
