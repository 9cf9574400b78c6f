import type { GenericSchema } from "valibot";
import { defineManyPort, type ManyPort } from "../port.ts";

/**
 * A kind of node that workflow definitions can use, beside those that give a definition its shape (`branch`, `map`, `human_gate`, …), which
 * every workflow service has. Two of one type, or of a type that the service has itself, stop the start.
 *
 * One is written as any adapter: `defineAdapter({ port: ports.workflowNodes, needs, open })`. `needs` is what its work needs (`models`, `records`,
 * …); what a type needs and an instance lacks is a fault that `check` tells, so that the type is there and definitions are refused in words.
 */
export interface WorkflowNode<I = any> extends NodeRules<I> {
  /**
   * Do the work of one attempt. Answers JSON of at most NODE_OUTPUT_BYTES. Throws NodeFailed to say in its own words what went wrong, and
   * whether trying again can help; whatever else it throws fails the node, too. Once `signal` aborted, it rejects soon, with whatever.
   */
  run(work: NodeWork<I>): Promise<unknown>;
}

/** What a definition can say to a node, and what may be done with it. */
export interface NodeRules<I = any> {
  /** What definitions name under `type`: 1-64 of letters, digits, `_`, `-`. */
  readonly type: string;
  /** Strict schema of `with` when its templates are filled in: what a node is given, what editors complete, what the documentation shows. */
  readonly input: GenericSchema<any, I>;
  /**
   * What those keys of `with` are whose values are no templates: `verbatim` is taken as it stands; `expression` is CEL (a text, bare or in
   * `${{ }}`) or, where it is no text, a template; `expressions` is an object of CEL texts; `graph` is nodes of its own.
   */
  readonly keys?: Readonly<Record<string, "verbatim" | "expression" | "expressions" | "graph">> | undefined;
  /** The cases that a node can end in, of its `with` as written; undefined where it has none. */
  cases?(written: Readonly<Record<string, unknown>>): readonly string[] | undefined;
  /** What is wrong with `with` as written beyond its schema, by path within it: what only this type, or this instance, can tell. */
  check?(written: Readonly<Record<string, unknown>>): readonly NodeFault[];
  /** Whether it may be executed again after a crash cut it, where the definition does not say so with `idempotent`. */
  readonly repeatable: boolean | ((input: I) => boolean);
  /**
   * Computed of its input alone, within milliseconds and always with the same result: it is computed again after a crash, and not
   * remembered. Default: false.
   */
  readonly pure?: boolean | undefined;
}

export interface NodeFault {
  readonly path: readonly (string | number)[];
  /** For the author of the definition. */
  readonly message: string;
}

export interface NodeWork<I> {
  /** Valid by the type's `input`. */
  readonly input: I;
  readonly step: NodeStep;
  /** Aborts when the attempt's time is over, the run is cancelled or failed, or the process stops. */
  readonly signal: AbortSignal;
}

/** Which execution this is. Run, node and attempt together are its own, and the same again when it is repeated after a crash. */
export interface NodeStep {
  readonly runId: string;
  readonly workflowId: string;
  /** With its place inside `map` and `loop`: `summarize[3].model`. */
  readonly nodeId: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** On whose behalf the run works, where somebody is known; grants nothing by itself. */
  readonly userId?: string | undefined;
  /** How deep the run stands in a chain of runs that begin each other: what a node begins elsewhere is told it. */
  readonly workflowDepth?: number | undefined;
}

/** Most bytes of a node's output as JSON. */
export const NODE_OUTPUT_BYTES = 4 * 1024 * 1024;

/** Why a node failed, in words for people that hold no secret. */
export class NodeFailed extends Error {
  override readonly name = "NodeFailed";
  /** A word for programs: `http_status`, `timeout`, … */
  readonly code: string;
  /** False where trying again cannot help: no retry is made. */
  readonly retryable: boolean;

  constructor(code: string, message: string, options: ErrorOptions & { readonly retryable?: boolean } = {}) {
    super(message, options);
    this.code = code;
    this.retryable = options.retryable ?? true;
  }
}

export const workflowNodes: ManyPort<WorkflowNode> = defineManyPort<WorkflowNode>("workflowNodes");
