import type { Instance } from "../../../api/instance.ts";
import { issueEditingGrant } from "../workflow-calls.ts";
import { editingCalls, type TestedCase } from "./stored-definition.ts";
import { hasCase, NO_CASES, withWritten } from "./test-cases.ts";

interface KeptCases {
  readonly text: string;
  /** Whether the editor shall lead to them when it opens. */
  readonly isHandedOver: boolean;
}

/** What users have written as cases, by workflow. It ends with the session. */
const kept = new WeakMap<Instance, Map<string, KeptCases>>();

function keep(instance: Instance, workflowId: string, cases: KeptCases): void {
  kept.set(instance, (kept.get(instance) ?? new Map<string, KeptCases>()).set(workflowId, cases));
}

/**
 * Adds a case to those of a workflow, for the editor that opens next. If there is a case of this name, it stays: the user may have
 * changed it. Throws PageFailure if the kept text has no place for the case.
 */
export function handOver(
  instance: Instance,
  workflowId: string,
  written: Readonly<Record<string, unknown>> & { readonly name: string },
): void {
  const before = kept.get(instance)?.get(workflowId)?.text ?? NO_CASES;
  const text = hasCase(before, written.name) ? before : withWritten(before, written);
  keep(instance, workflowId, { text, isHandedOver: true });
}

/** The cases of a definition, and their last results. */
export class CaseRun {
  #cases = $state(NO_CASES);
  isBusy = $state(false);
  failure = $state.raw<unknown>();
  /** The results, and the texts that they belong to. */
  result = $state.raw<{ readonly text: string; readonly cases: string; readonly tested: readonly TestedCase[] }>();
  /** Whether another page gave a case to this editor. */
  readonly isHandedOver: boolean;
  /** The case that the graph shows. */
  shown = $state.raw<TestedCase>();
  readonly #instance: Instance;
  readonly #workflowId: string;

  constructor(instance: Instance, workflowId: string) {
    this.#instance = instance;
    this.#workflowId = workflowId;
    const { text, isHandedOver } = kept.get(instance)?.get(workflowId) ?? { text: NO_CASES, isHandedOver: false };
    this.#cases = text;
    this.isHandedOver = isHandedOver;
    if (isHandedOver) keep(instance, workflowId, { text, isHandedOver: false });
  }

  get cases(): string {
    return this.#cases;
  }

  set cases(text: string) {
    this.#cases = text;
    keep(this.#instance, this.#workflowId, { text, isHandedOver: false });
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
