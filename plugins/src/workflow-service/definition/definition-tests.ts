import { definePort, type Port, type ports } from "@portico/core";

/** A definition and its cases, as texts. */
export interface TestedDefinition {
  readonly workflowId: string;
  readonly text: string;
  /** YAML: `cases`, and `secrets` as placeholders. A file of cases of `portico workflow test`, whose `definition` is ignored. */
  readonly cases: string;
  /** The kinds of nodes of the service. */
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  readonly secretNames: Iterable<string>;
  /** Time for all cases, in milliseconds. */
  readonly limitMs: number;
}

/** The end of one case. */
export interface TestedCase {
  readonly name: string;
  readonly isOk: boolean;
  /** One line for each difference from the expectation. */
  readonly differences: readonly string[];
  /** How the run ended. Absent if it did not end. */
  readonly found?: {
    readonly status: string;
    readonly outputs?: unknown;
    /** The outputs are too long to be shown. */
    readonly outputsOmitted?: true;
    readonly error?: { readonly code: string; readonly message: string; readonly nodeId?: string | undefined } | undefined;
    readonly nodes: Readonly<Record<string, string>>;
  };
}

/** Executes cases of definitions without effects: in memory, with the answers that the cases give. */
export interface DefinitionTests {
  /** `problems`: why no case was executed. Rejects after an abort. */
  run(
    tested: TestedDefinition,
    signal: AbortSignal,
  ): Promise<{ readonly problems: readonly string[] } | { readonly cases: readonly TestedCase[] }>;
}

/** The port of what executes cases of definitions. */
export const definitionTests: Port<DefinitionTests> = definePort<DefinitionTests>("workflow-service/definition-tests");
