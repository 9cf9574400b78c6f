import type { ports } from "@portico/core";
import type { Expression, Template } from "./expression.ts";
import type { SensitivePaths } from "./sensitive-paths.ts";

/** JSON Schema 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A workflow definition that was read, checked and compiled: everything in it can be used as it is. */
export interface Definition {
  /** 1-64 of letters, digits, `_`, `-`. */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly creator: string;
  /** Lowercase hex SHA-256 of `id`, a line feed and `text`: the same definition has the same. */
  readonly hash: string;
  /** The document as it was read: what a run keeps of the definition that it started with. */
  readonly text: string;
  /** Schema of the trigger's body, an object's. */
  readonly parameters: JsonSchema;
  /** Of a whole run; waiting for a person not counted. */
  readonly timeoutMs: number;
  readonly graph: Graph;
  /** Absent where the document has none: then the run has no final outputs. */
  readonly outputs?: Template | undefined;
}

/** Nodes that depend on each other: those of a definition, or of a `map` or `loop` node. There are no circles. */
export interface Graph {
  /** By id, in an order in which every node comes behind its needs. */
  readonly nodes: ReadonlyMap<string, GraphNode>;
}

export interface GraphNode {
  readonly id: string;
  /** Display name. */
  readonly name?: string | undefined;
  readonly rules: ports.NodeRules;
  readonly needs: readonly Need[];
  /** `if`: without it the node runs when its needs say so. */
  readonly condition?: Expression | undefined;
  /** Values of `with` by key, each compiled as its node type says. */
  readonly with: Readonly<Record<string, NodeValue>>;
  /** Cases that the node can end in; undefined where it has none. */
  readonly cases?: ReadonlySet<string> | undefined;
  readonly retry: Retry;
  /** Of one attempt. */
  readonly timeoutMs?: number | undefined;
  readonly onError: "fail" | "continue";
  /** Whether the author says that it may be executed again; undefined leaves it to the node type. */
  readonly idempotent?: boolean | undefined;
  /** What of its output is a secret. */
  readonly sensitive?: SensitivePaths | undefined;
}

/** `case` names a case of the needed node. A need without one means the case that a gate passes with, and of any other node every case. */
export interface Need {
  readonly node: string;
  readonly case?: string | undefined;
}

export interface Retry {
  /** In all; 1 is no retry. */
  readonly attempts: number;
  readonly delayMs: number;
  /** Each delay is this many times the one before. */
  readonly factor: number;
  readonly maxDelayMs: number;
}

/** One value of `with`, by what its type's rules say of the key. */
export type NodeValue =
  | { readonly kind: "template"; readonly template: Template }
  | { readonly kind: "verbatim"; readonly value: unknown }
  | { readonly kind: "expression"; readonly expression: Expression }
  | { readonly kind: "expressions"; readonly expressions: ReadonlyMap<string, Expression> }
  | { readonly kind: "graph"; readonly graph: Graph };
