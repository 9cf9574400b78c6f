import type { Readable } from "node:stream";
import type { GenericSchema } from "valibot";
import type { ModelUsage } from "./usage.ts";
import { defineManyPort, type ManyPort } from "../grammar/port.ts";
import type { BlobSource } from "./blobs.ts";

/**
 * A kind of node for workflow definitions, in addition to the nodes that structure a definition (`branch`, `map`, `human_gate`,
 * …), which every workflow service has. The start fails if two nodes have the same type, or if a node has the type of a built-in
 * one.
 *
 * Write one with `defineWorkflowNode({ needs, rules, open })`, or as any adapter: `defineAdapter({ port: ports.workflowNodes,
 * needs, open })`. `needs` lists the ports that it uses (`models`, `records`, …). If an instance lacks such a port, `check`
 * reports a fault: the type exists, and definitions that use it are refused with a message.
 */
export interface WorkflowNode<I = any> extends NodeRules<I> {
  /**
   * Execute one attempt. Returns JSON of at most NODE_OUTPUT_BYTES and NODE_OUTPUT_LEVELS. Throws NodeFailed to give its own
   * message, and to say whether a retry can help. Any other error also fails the node. When `signal` aborts, it must reject soon,
   * with any error.
   */
  run(work: NodeWork<I>): Promise<unknown>;
}

/** The syntax of a node in definitions, and how it may be executed. */
export interface NodeRules<I = any> {
  /** The value of `type` in definitions: 1-64 of letters, digits, `_`, `-`. */
  readonly type: string;
  /**
   * Strict schema of `with` after its templates are filled in. It describes the input of the node. Editors complete it, and the
   * documentation shows it.
   */
  readonly input: GenericSchema<any, I>;
  /**
   * The keys of `with` whose values are not templates. `verbatim` is used unchanged. `expression` is CEL (a text, bare or in `${{
   * }}`); if the value is not a text, it is a template. `expressions` is an object of CEL texts. `graph` is a set of nodes.
   */
  readonly keys?: Readonly<Record<string, "verbatim" | "expression" | "expressions" | "graph">> | undefined;
  /** The possible cases (outcomes) of a node, by its `with` as written. Undefined for a node without cases. */
  cases?(written: Readonly<Record<string, unknown>>): readonly string[] | undefined;
  /**
   * Set for a gate, such as `human_gate`: a need without a case means the case `pass`, and the case `stop` fails the run if no
   * node needs it.
   */
  readonly gate?: { readonly pass: string; readonly stop: string } | undefined;
  /** Whether expressions of inner nodes can use `previous`, as inside `loop`. Default: false. */
  readonly hasPrevious?: boolean | undefined;
  /** Problems of `with` as written, beyond its schema, by path within it: rules that only this type or this instance knows. */
  check?(written: Readonly<Record<string, unknown>>): readonly NodeFault[];
  /** Whether it may be executed again after a crash interrupted it. `idempotent` in the definition takes precedence. */
  readonly repeatable: boolean | ((input: I) => boolean);
  /**
   * The result depends only on the input and takes milliseconds. It is not stored: after a crash it is computed again. Default:
   * false.
   */
  readonly pure?: boolean | undefined;
}

/** One problem of a node as written. */
export interface NodeFault {
  readonly path: readonly (string | number)[];
  /** Message for the author of the definition. */
  readonly message: string;
}

/** One attempt to execute a node. */
export interface NodeWork<I> {
  /** Valid by the type's `input`. */
  readonly input: I;
  readonly step: NodeStep;
  /** Aborts when the attempt times out, the run is cancelled or failed, or the process stops. */
  readonly signal: AbortSignal;
  /** Report what a model used for this attempt, also if the attempt fails. Reports are added up, and shown with the run. */
  used?(usage: ModelUsage): void;
  /**
   * The files of the run. Undefined without storage for them, for a pure node, and for a node whose output is `sensitive`: files are not
   * encrypted.
   */
  readonly files?: NodeFiles | undefined;
  /**
   * Whether a text contains a secret of the run in any form: a configured one, or a `sensitive` value of an earlier node. For what must not
   * go to a place that the definition does not name, such as the target of a redirect. Undefined: the run knows no secrets.
   */
  isSecret?(text: string): boolean;
}

/** A file of a run: a value in outputs and parameters, whose bytes are stored beside the run and removed with it. */
export interface RunFile {
  /** ID of the file. It names the file only in the runs that have it. */
  readonly file: string;
  readonly name: string;
  /** As its sender declared it: the bytes may be of another type. */
  readonly mediaType: string;
  /** Bytes. */
  readonly size: number;
  /** SHA-256 of the bytes, in lowercase hex. */
  readonly sha256: string;
}

/** The files of a run, for one attempt of a node. Functions throw NodeFailed, whose codes begin with what they could not do. */
export interface NodeFiles {
  /**
   * Store the bytes of a source as a file of the run. They are streamed, so memory does not grow with their size. If the attempt fails, the
   * file is removed. Name and media type are cleaned. Secrets in files of text types are masked, so the file may be smaller than the source. Codes: `file_too_large`, `run_files_too_large`, `too_many_files`, `files_unavailable`.
   * Rejects with the source's own error, too, and then with the attempt's reason if it was stopped. A source that is not read to its end is
   * destroyed, or `return` is called.
   */
  save(source: BlobSource, about: { readonly name: string; readonly mediaType?: string | undefined }): Promise<RunFile>;
  /**
   * A file by its value: its ID, or an object with the ID as `file`, such as a RunFile. Only the ID is read of it. Codes: `file_not_found`
   * for any other value and for a file that the run does not have, `files_unavailable`.
   */
  find(value: unknown): Promise<RunFile>;
  /** All bytes of a file. Read the stream to its end or destroy it. Codes: those of `find`. */
  open(value: unknown): Promise<Readable>;
  /**
   * Copy an attachment (specification 4.5) into a file of the run, by the `fileReference` of its receipt. Only in a run whose grant names the
   * user who uploaded it. Codes: `attachment_user_required`, `attachment_not_found`, `attachments_unavailable`, and those of `save`.
   */
  copyAttachment(fileReference: string): Promise<RunFile>;
}

/**
 * Identifies an execution. Run, node and attempt together are unique, and stay the same when the execution is repeated after a
 * crash.
 */
export interface NodeStep {
  readonly runId: string;
  readonly workflowId: string;
  /** With its position inside `map` and `loop`: `summarize[3].model`. */
  readonly nodeId: string;
  /** 1 for the first. */
  readonly attempt: number;
  /**
   * Set in runs that resume another run: the first run of that chain. A node that sends idempotency keys uses it in place of `runId`, so that
   * a repeated node sends the keys of the first run. Absent for `onFailure` and nodes with `if: always`, which belong to one run.
   */
  readonly originalRunId?: string | undefined;
  /** The user that the run works for, if known. Grants no permission by itself. */
  readonly userId?: string | undefined;
  /** Nesting depth of the run in a chain of runs that begin each other. A node passes it to the runs that it begins. */
  readonly workflowDepth?: number | undefined;
}

/** Maximum size of a node's output as JSON, in bytes. */
export const NODE_OUTPUT_BYTES = 4 * 1024 * 1024;

/** Maximum nesting of lists and objects in a node's output. */
export const NODE_OUTPUT_LEVELS = 1000;

/** Why a node failed, in a message for people without secrets. */
export class NodeFailed extends Error {
  override readonly name = "NodeFailed";
  /** A code for programs: `http_status`, `timeout`, … */
  readonly code: string;
  /** False if a retry cannot help. No retry is made then. */
  readonly retryable: boolean;
  /** The answer that the node got from a service, which expressions can read as `nodes.ID.error`. Secrets in it are masked. */
  readonly answer: FailedAnswer | undefined;
  /** How long a retry should wait at least, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: string, message: string, options: NodeFailedOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryable = options.retryable ?? true;
    this.answer = options.answer;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Options of `NodeFailed`. */
export interface NodeFailedOptions extends ErrorOptions {
  /** Default: true. */
  readonly retryable?: boolean | undefined;
  readonly answer?: FailedAnswer | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** What a service answered to a node that failed. */
export interface FailedAnswer {
  readonly status: number;
  /**
   * JSON, or a text. If it is larger than FAILED_BODY_BYTES as JSON, only the beginning of its text is kept. A node may give a longer beginning:
   * the service looks for secrets before it cuts. Undefined without a body.
   */
  readonly body?: unknown;
  /** Whether `body` is only the beginning of the text of a longer body. */
  readonly bodyTruncated?: boolean | undefined;
}

/** Maximum size of a failed answer's body that is kept, as JSON in bytes. */
export const FAILED_BODY_BYTES = 16 * 1024;

/** The port of kinds of workflow nodes. */
export const workflowNodes: ManyPort<WorkflowNode> = defineManyPort<WorkflowNode>("workflowNodes");
