import type { Instance } from "../../../api/instance.ts";
import { issueEditingGrant } from "../workflow-calls.ts";
import { editingCalls, type TestedCase } from "./stored-definition.ts";
import { NO_CASES } from "./test-cases.ts";

/** What users have written as cases, by workflow. It ends with the session. */
const kept = new WeakMap<Instance, Map<string, string>>();

/** The cases of a definition, and their last results. */
export class CaseRun {
  #cases = $state(NO_CASES);
  isBusy = $state(false);
  failure = $state.raw<unknown>();
  /** The results, and the texts that they belong to. */
  result = $state.raw<{ readonly text: string; readonly cases: string; readonly tested: readonly TestedCase[] }>();
  /** The case that the graph shows. */
  shown = $state.raw<TestedCase>();
  readonly #instance: Instance;
  readonly #workflowId: string;

  constructor(instance: Instance, workflowId: string) {
    this.#instance = instance;
    this.#workflowId = workflowId;
    this.#cases = kept.get(instance)?.get(workflowId) ?? NO_CASES;
  }

  get cases(): string {
    return this.#cases;
  }

  set cases(text: string) {
    this.#cases = text;
    const all = kept.get(this.#instance) ?? new Map<string, string>();
    kept.set(this.#instance, all.set(this.#workflowId, text));
  }

  /** Executes the cases with this text of the definition. Failures are in `failure`. */
  async run(text: string): Promise<void> {
    this.isBusy = true;
    this.failure = undefined;
    const tested = { text, cases: this.#cases };
    try {
      const headers = { "x-execution-grant": await issueEditingGrant(this.#instance, this.#workflowId) };
      const { testDefinition } = editingCalls(this.#instance);
      const { cases } = await testDefinition({ params: { id: this.#workflowId }, body: tested, headers });
      this.result = { ...tested, tested: cases };
      this.shown = this.shown && cases.find(({ name }) => name === this.shown?.name);
    } catch (error) {
      [this.failure, this.result, this.shown] = [error, undefined, undefined];
    }
    this.isBusy = false;
  }
}
