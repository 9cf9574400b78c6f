import type { ports } from "@portico/core";
import { hasAtMost } from "@portico/core/contract";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";
import type { Gate, NodeError } from "./ledger-entry.ts";
import { isTerminal, type RunStatus } from "../contracts/run-state.ts";
import { FIELD_CHARACTERS } from "../contracts/limits.ts";

/** A run as it is stored; its nodes stand in its ledger. */
export interface RunRecord {
  readonly runId: string;
  readonly workflowId: string;
  /** Of the definition that it started with: its hash, and what is shown of it. */
  readonly definition: string;
  readonly name: string;
  readonly nodeCount: number;
  readonly status: RunStatus;
  /** ISO 8601: when it was accepted. */
  readonly startedAt: string;
  readonly completedAt?: string | undefined;
  readonly totalDurationMs?: number | undefined;
  /** Up to when its execution last stopped or opened a gate: of a run that executes, its process knows better. */
  readonly completedNodeCount: number;
  readonly error?: RunError | undefined;
  /** What models used for its own nodes. Set when it has ended. */
  readonly usage?: ports.ModelUsage | undefined;
  /** Gates that wait for a person, the one that has waited longest first. */
  readonly gates?: readonly Gate[] | undefined;
  /** For how long its time stood still because of them, and since when it does: milliseconds, and milliseconds since 1970. */
  readonly standstill?: { readonly ms: number; readonly since?: number | undefined } | undefined;
  /** The process that accepted it. Only this process can send its live events. */
  readonly instance: string;
  /** The user for whom it works, if a user is known. */
  readonly userId?: string | undefined;
  /** The user whom its grant names: the run may use attachments of this user. */
  readonly grantUserId?: string | undefined;
  /** The binding that it was started under (specification 4.2, task scope). */
  readonly bindingId?: string | undefined;
  readonly boardId?: string | undefined;
  readonly taskId?: string | undefined;
  /** Of a run that a `workflow` node started. */
  readonly parent?:
    | {
        readonly runId: string;
        readonly nodeId: string;
        /** The parts of this run's outputs that the node marks as secret. */
        readonly sensitive?: SensitivePaths | undefined;
      }
    | undefined;
  /** Of a run that a schedule of its definition started, and of a run that resumes one. `plannedAt`: ISO 8601; absent if it was started by hand. */
  readonly schedule?: { readonly name: string; readonly plannedAt?: string | undefined } | undefined;
  /** Of a run that resumes another. */
  readonly resumes?: ResumedRun | undefined;
  /** The run whose parameters it was started with anew. */
  readonly rerunOf?: string | undefined;
  /** The run that resumes this one. A run is resumed once: after that, the newer run is resumed. */
  readonly resumedBy?: { readonly runId: string; readonly idempotencyKey: string } | undefined;
  /** Set when it has ended and its history has all results of its finished nodes. */
  readonly isComplete?: true | undefined;
  /** The values of its declared fields. Absent if the definition declares none. */
  readonly fields?: RunFields | undefined;
  /** Of a run of a workflow with `concurrency`. */
  readonly slot?: RunSlot | undefined;
  /** Of a run that waited for further triggers: where they are. */
  readonly debounce?: { readonly id: string } | undefined;
  /** When it began, in milliseconds since 1970, if it had to wait for that. Its time limit counts from then. */
  readonly begunAt?: number | undefined;
  /** Its depth in a chain of runs that start each other, also through agents; absent at the top. */
  readonly depth?: number | undefined;
}

/** The place of a run among those that share a limit. */
export interface RunSlot {
  /** The list of these runs. */
  readonly listId: string;
  /** It was accepted beyond the limit: its first node waits for a signal. */
  readonly waits?: true | undefined;
}

/** Whether a run waits before its first node, for further triggers or for other runs of its workflow to end. */
export function waitsToBegin({ slot, debounce }: RunRecord): boolean {
  return slot?.waits === true || debounce !== undefined;
}

/** Whether it still does. */
export function isQueued(run: RunRecord): boolean {
  return waitsToBegin(run) && run.begunAt === undefined && !isTerminal(run.status);
}

/** The run that another run resumes, and the nodes that are repeated although they had finished. */
export interface ResumedRun {
  readonly runId: string;
  /** The first run of the chain. Repeated nodes send its idempotency keys. */
  readonly originalRunId: string;
  /** Nodes of the definition. */
  readonly repeat?: readonly string[] | undefined;
  /** It has the definition that was deployed when it was resumed, and so do the runs that it resumes for its `workflow` nodes. */
  readonly isCurrent?: true | undefined;
  /** Nodes that send the idempotency keys of a later run than the first: the run since which they differ. */
  readonly renewed?: Readonly<Record<string, string>> | undefined;
}

/** Why a run failed, was cancelled or is interrupted. */
export interface RunError extends NodeError {
  readonly nodeId?: string | undefined;
}

export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly error?: RunError | undefined;
  readonly completedNodeCount: number;
  readonly usage?: ports.ModelUsage | undefined;
  readonly isComplete?: boolean | undefined;
  /** The values of the declared outputs. */
  readonly outputFields?: FieldValues | undefined;
}

/** A run that has ended. */
export function endedRun(run: RunRecord, end: RunEnd): RunRecord {
  const { status, at, error, completedNodeCount, usage, isComplete, outputFields } = end;
  const { gates: _gates, standstill: _standstill, ...rest } = run;
  return {
    ...rest,
    status,
    completedNodeCount,
    completedAt: new Date(at).toISOString(),
    totalDurationMs: Math.max(0, at - Date.parse(run.startedAt)),
    ...(error && { error }),
    ...(usage && { usage }),
    ...(isComplete && { isComplete }),
    ...(outputFields && { fields: { ...run.fields, outputs: outputFields } }),
  };
}

/** The values of a run by which it can be found, as texts: by path, such as `customer.id`. */
export interface RunFields {
  readonly parameters?: FieldValues | undefined;
  readonly outputs?: FieldValues | undefined;
}

/** Values as texts, by path. */
export type FieldValues = Readonly<Record<string, string>>;

/**
 * The values at the declared paths: texts of at most 200 characters, numbers and booleans. `shown` is the value with its secrets masked: a
 * value that differs in it is secret, and left out. Undefined without any value.
 */
export function readFields(paths: readonly string[] | undefined, value: unknown, shown: unknown): FieldValues | undefined {
  const found = (paths ?? []).flatMap((path) => {
    const keys = path.split(".");
    const text = textOf(at(value, keys));
    return text === undefined || textOf(at(shown, keys)) !== text ? [] : [[path, text] as const];
  });
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}

function at(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<string, unknown>)[key]
        : undefined,
    value,
  );
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && hasAtMost(FIELD_CHARACTERS, value) ? value : undefined;
}
