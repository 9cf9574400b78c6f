import { defineAdapter, ports, type Scope } from "@portico/core";
import { type DefinitionTests, definitionTests, type TestedCase } from "@portico/plugins/workflow-service/definition-tests";
import { readDefinitions } from "@portico/plugins/workflow-service/definitions";
import { readCasesOfText } from "./case-file.ts";
import { rulesOfCases, secretsOfCases, unknownIds } from "./prepare-cases.ts";
import { runCase } from "./run-case.ts";

/** Maximum cases of one call. `portico workflow test` has no such limit. */
const CASES = 20;
/** Only one, so that scripts of cases leave the processors to the service. */
const THREADS = 1;
/** Maximum characters of the outputs of a case as JSON, and of a difference, and maximum differences. The answer has no more. */
const OUTPUTS = 64 * 1024;
const DIFFERENCE = 2000;
const DIFFERENCES = 100;
const SILENT = { warn() {} };

/** Executes cases for the workflow service, as `portico workflow test` does: in memory, without network, models and waiting. */
export const definitionTestsInMemory = defineAdapter({
  name: "workflow-service/definition-tests-in-memory",
  port: definitionTests,
  needs: { clock: ports.clock },
  open: ({ clock }): DefinitionTests => ({
    async run({ workflowId, text, cases: written, types: known, secretNames, limitMs }, signal) {
      const read = readCasesOfText(written);
      if ("problems" in read) return read;
      const { cases } = read;
      if (cases.cases.length > CASES) return { problems: [`There are at most ${CASES} cases`] };
      const types = rulesOfCases(known);
      const secrets = secretsOfCases(secretNames, cases);
      const document = `${workflowId}.yaml`;
      const loading = { types, secretNames: Object.keys(secrets) };
      const { definition, problems } = await beside(signal, (scope) =>
        readDefinitions(loading, { clock, log: SILENT }, scope)({ name: document, text }),
      );
      if (!definition) return { problems: problems.map(({ line, column, message }) => `${line}:${column}: ${message}`) };
      const unknown = unknownIds(cases, definition);
      if (unknown.length > 0) return { problems: unknown };
      const endsAt = performance.now() + limitMs;
      const done: TestedCase[] = [];
      for (const test of cases.cases) {
        signal.throwIfAborted();
        const left = Math.max(1, Math.ceil(endsAt - performance.now()));
        const given = { definition, document, types, secrets, signal, limitMs: left, threads: THREADS, isSilent: true };
        done.push(toShown(await runCase(test, given)));
      }
      return { cases: done };
    },
  }),
});

/** Closes what `work` opens when it has ended, and at once after an abort. Rejects with the signal's reason. */
async function beside<T>(signal: AbortSignal, work: (scope: Scope) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const closers: (() => unknown)[] = [];
  const close = () => closers.splice(0).map((undo) => undo());
  signal.addEventListener("abort", close, { once: true });
  try {
    const result = await work({ onClose: (undo) => void closers.push(undo), onReady() {} });
    signal.throwIfAborted();
    return result;
  } finally {
    signal.removeEventListener("abort", close);
    await Promise.all(close());
  }
}

function toShown({ found, differences, ...more }: TestedCase): TestedCase {
  const shown = differences
    .slice(0, DIFFERENCES)
    .map((each) => (each.length > DIFFERENCE ? `${each.slice(0, DIFFERENCE)}…` : each));
  if (!found) return { ...more, differences: shown };
  const { outputs, ...ended } = found;
  if (outputs === undefined || JSON.stringify(outputs).length <= OUTPUTS) return { ...more, found, differences: shown };
  return { ...more, found: { ...ended, outputsOmitted: true }, differences: shown };
}
