import { defineWorkflowNode, hasAtMost, maxCharacters, ports } from "@portico/core";
import * as v from "valibot";
import { type CodeJob, placeIn, scriptFaults } from "./code/script.ts";
import { readOutcome } from "./sandbox/read-outcome.ts";
import { createSandboxThreads } from "./sandbox/sandbox-threads.ts";

/** Options of `codeNode`. */
export interface CodeNodeOptions {
  /** Limit of processor time for one script. Default: 1,000. */
  readonly cpuMs?: number;
  /** Maximum number of threads, apart from eight for slow scripts. Default: one for each processor. */
  readonly threads?: number | undefined;
}

const SOURCE_CHARACTERS = 256 * 1024;

const input = v.strictObject({
  language: v.optional(v.pipe(v.literal("javascript"), v.description("The only language.")), "javascript"),
  source: v.pipe(
    v.string(),
    v.minLength(1),
    maxCharacters(SOURCE_CHARACTERS),
    v.description("Body of a function. `input` is in scope. Its return value is the output."),
  ),
  input: v.optional(v.pipe(v.unknown(), v.description("Input of `source`."))),
});

type CodeInput = v.InferOutput<typeof input>;

const CPU_MS = 1_000;
const MEMORY_BYTES = 32 * 1024 * 1024;

const worker = () => new URL(import.meta.resolve("#code-worker"));

/**
 * Nodes that run a script in QuickJS, which offers only the language itself. Scripts run in threads beside the event loop, each
 * for at most a second and in 32 MB.
 */
export const codeNode = defineWorkflowNode({
  name: "workflow-nodes/code",
  needs: { clock: ports.clock },
  rules: (): ports.NodeRules<CodeInput> => ({
    type: "code",
    input,
    keys: { source: "verbatim" },
    // The language has time and random numbers: the same script may give another result.
    repeatable: true,
    check: ({ source }) => (typeof source === "string" && hasAtMost(SOURCE_CHARACTERS, source) ? scriptFaults(source) : []),
  }),
  open({ clock }, { cpuMs = CPU_MS, threads }: CodeNodeOptions, scope) {
    const limits = { cpuMs, memoryBytes: MEMORY_BYTES };
    const running = createSandboxThreads<CodeJob>({ name: "portico-code", module: worker, limits, threads }, clock);
    scope.onClose(() => running.close());
    return {
      async run({ input: { source, input }, signal }: ports.NodeWork<CodeInput>) {
        signal.throwIfAborted();
        const json = input === undefined ? undefined : JSON.stringify(input);
        const outcome = await running.run({ source, input: json }, signal);
        return readOutcome(outcome, { code: "code", subject: "The script", limits, place: placeIn });
      },
    };
  },
});
