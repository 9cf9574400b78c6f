import { defineAdapter } from "@portico/core";
import { type DefinitionTests, definitionTests, type TestedCase } from "@portico/plugins/workflow-service/definition-tests";
import { loadDefinition } from "@portico/plugins/workflow-service/definitions";
import { readCasesOfText } from "./case-file.ts";
import { rulesOfCases, secretsOfCases, unknownIds } from "./prepare-cases.ts";
import { runCase } from "./run-case.ts";

/** Maximum cases of one call. `portico workflow test` has no such limit. */
const CASES = 20;
/** Only one, so that scripts of cases leave the processors to the service. */
const THREADS = 1;

/** Executes cases for the workflow service, as `portico workflow test` does: in memory, without network, models and waiting. */
export const definitionTestsInMemory = defineAdapter({
  name: "workflow-service/definition-tests-in-memory",
  port: definitionTests,
  needs: {},
  open: (): DefinitionTests => ({
    async run({ workflowId, text, cases: written, types: known, secretNames, limitMs }, signal) {
      const read = readCasesOfText(written);
      if ("problems" in read) return read;
      const { cases } = read;
      if (cases.cases.length > CASES) return { problems: [`There are at most ${CASES} cases`] };
      const types = rulesOfCases(known);
      const secrets = secretsOfCases(secretNames, cases);
      const document = `${workflowId}.yaml`;
      const { definition, problems } = loadDefinition({ name: document, text }, { types, secretNames: Object.keys(secrets) });
      if (!definition) return { problems: problems.map(({ line, column, message }) => `${line}:${column}: ${message}`) };
      const unknown = unknownIds(cases, definition);
      if (unknown.length > 0) return { problems: unknown };
      const endsAt = performance.now() + limitMs;
      const done: TestedCase[] = [];
      for (const test of cases.cases) {
        signal.throwIfAborted();
        const left = Math.max(1, Math.ceil(endsAt - performance.now()));
        done.push(await runCase(test, { definition, document, types, secrets, signal, limitMs: left, threads: THREADS }));
      }
      return { cases: done };
    },
  }),
});
