import { type ports, retryWhileStoreAway, type StoreRetry } from "@portico/core";
import { type Definition, type GraphNode, nodeAt } from "../definition/definition.ts";
import { type Callbacks, callbackSignal, isEvent } from "../runs/callbacks.ts";
import { gateOutput, type Gates } from "../runs/gates.ts";
import type { Ledger } from "../runs/ledger.ts";
import type { NodeEnded, NodeStarted } from "../runs/ledger-entry.ts";
import { childRunId } from "../runs/run-id.ts";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import { isNodeFailed, type Attempt } from "./attempt.ts";

interface Finished {
  readonly output: unknown;
  readonly hidden?: Hidden | undefined;
  readonly case?: string | undefined;
  readonly attempts: number;
  readonly startedAt?: number | undefined;
  readonly endedAt?: number | undefined;
}

interface Given {
  readonly context: ports.WorkContext;
  readonly runId: string;
  readonly definition: Definition;
  readonly ledger: Ledger;
  readonly gates: Gates;
  readonly callbacks: Callbacks;
  readonly secrecy: RunSecrecy;
  readonly clock: ports.Clock;
  readonly storeRetry: StoreRetry;
}

/**
 * The nodes that earlier executions of a run finished. A process may die after a node has finished and before history has it. The next
 * execution reaches the node again, except if the run fails or is interrupted before. History must have it even then: a run that resumes
 * this one repeats no finished node.
 */
export class EarlierNodes {
  readonly #ledger: Ledger;
  readonly #entries: ReadonlyMap<string, NodeEnded>;
  /** Nodes that had begun, as far as the engine knows. */
  readonly #begun: ReadonlyMap<string, NodeStarted>;
  /** Turns of agents that were started, and whose end is unknown. */
  readonly turns: readonly string[];
  /** Runs that were started. */
  readonly children: readonly string[];

  constructor(given: {
    readonly ledger: Ledger;
    readonly entries?: ReadonlyMap<string, NodeEnded>;
    readonly begun?: ReadonlyMap<string, NodeStarted>;
    readonly turns?: readonly string[];
    readonly children?: readonly string[];
  }) {
    const { ledger, entries = new Map(), begun = new Map(), turns = [], children = [] } = given;
    this.#begun = begun;
    this.#ledger = ledger;
    this.#entries = entries;
    this.turns = turns;
    this.children = children;
  }

  /** Writes the end of this node to history, if an earlier execution finished it. Returns whether it did. */
  record(nodeId: string): boolean {
    const entry = this.#entries.get(nodeId);
    if (!entry) return false;
    const { type, name, startedAt } = entry;
    this.#ledger.add({ kind: "start", nodeId, type, name, at: startedAt! });
    this.#ledger.add(entry);
    return true;
  }

  /** Writes what is known of a node that this execution does not reach. Returns whether anything is. */
  recordUnreached(nodeId: string): boolean {
    if (this.record(nodeId)) return true;
    const begun = this.#begun.get(nodeId);
    if (begun) this.#ledger.add(begun);
    return begun !== undefined;
  }

  /** Writes what is known of all these nodes, as far as history does not have it. */
  recordAll(): void {
    for (const nodeId of new Set([...this.#entries.keys(), ...this.#begun.keys()])) this.recordUnreached(nodeId);
  }
}

/** Reads what the engine stored for earlier executions of a run. */
export async function readEarlierNodes(given: Given): Promise<EarlierNodes> {
  const { context, runId, definition, ledger, gates, callbacks, secrecy, clock, storeRetry } = given;
  const earlier = context.earlier();
  if (earlier.length === 0) return new EarlierNodes({ ledger });
  const signals = new Map(earlier.flatMap(({ kind, name, value }) => (kind === "signal" ? [[name, value] as const] : [])));
  const entries = new Map<string, NodeEnded>();
  const begun = new Map<string, NodeStarted>();
  const turns: string[] = [];
  const children: string[] = [];
  for (const { kind, name, value } of earlier) {
    const [, nodeId, what, attempt] = (kind !== "signal" && /^(\S+) (start |awaits |requested)?(?:#(\d+))?$/.exec(name)) || [];
    const node = nodeId === undefined ? undefined : nodeAt(definition, nodeId)?.node;
    if (!node) continue;
    const { name: title, rules } = node;
    begun.set(nodeId!, {
      kind: "start",
      nodeId: nodeId!,
      type: rules.type,
      name: title,
      at: new Date(clock.now()).toISOString(),
    });
    if (kind === "begun") continue;
    const finished = await finishedBy(nodeId!, what, Number(attempt ?? 1), { type: node.rules.type, value });
    if (finished) entries.set(nodeId!, entryOf(nodeId!, node, finished));
  }
  return new EarlierNodes({ ledger, entries, begun, turns, children });

  async function finishedBy(
    nodeId: string,
    what: string | undefined,
    attempts: number,
    { type, value }: { readonly type: string; readonly value: unknown },
  ): Promise<Finished | undefined> {
    if (what === undefined) {
      const result = value as Attempt;
      return result.isOk ? { ...result, attempts } : undefined;
    }
    if (what === "requested") return decided(nodeId, Number(value));
    if (what === "awaits ") return received(nodeId, attempts, Number(value));
    if (type === "workflow") children.push(childRunId(runId, nodeId, attempts));
    if (type !== "agent" || value === null) return undefined;
    const turn = value as { readonly runId: string };
    const ended = signals.get(`${nodeId} turn #${attempts}`) as ports.BackgroundTurnEnd | undefined;
    if (!ended) turns.push(turn.runId);
    if (ended?.status !== "completed") return undefined;
    return { ...(await stored({ text: ended.output, runId: turn.runId })), attempts };
  }

  async function decided(nodeId: string, startedAt: number): Promise<Finished | undefined> {
    const decision = await opened(() => gates.find(runId, nodeId));
    if (!decision) return undefined;
    const { decision: taken, decidedAt } = decision;
    const output = await stored(gateOutput(decision), nodeAt(definition, nodeId)!.node.sensitive);
    return { ...output, case: taken, attempts: 1, startedAt, endedAt: Date.parse(decidedAt) };
  }

  async function received(nodeId: string, attempts: number, startedAt: number): Promise<Finished | undefined> {
    const end = await opened(() => callbacks.find(runId, callbackSignal(nodeId, attempts)));
    if (!end || !isEvent(end)) return undefined;
    const output = await stored(end.body, nodeAt(definition, nodeId)!.node.sensitive);
    return { ...output, attempts, startedAt, endedAt: Date.parse(end.at) };
  }

  /** An answer from outside. Undefined if its values cannot be opened any more: then the node waits again. */
  async function opened<T>(find: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      return await retryWhileStoreAway(storeRetry, find);
    } catch (error) {
      if (isNodeFailed(error)) return undefined;
      throw error;
    }
  }

  async function stored(output: unknown, sensitive?: GraphNode["sensitive"]): Promise<Pick<Finished, "output" | "hidden">> {
    const { value, hidden } = await retryWhileStoreAway(storeRetry, () => secrecy.toStored(runId, output, sensitive));
    return { output: value, ...(hidden && { hidden }) };
  }

  function entryOf(nodeId: string, { rules, name }: GraphNode, finished: Finished): NodeEnded {
    const { output, hidden, case: taken, attempts, endedAt = clock.now(), startedAt = endedAt } = finished;
    return {
      ...{ kind: "end", nodeId, type: rules.type, name, status: "completed", attempts, outputs: output },
      kept: { ...(taken !== undefined && { case: taken }), ...(hidden && { hidden }) },
      startedAt: new Date(startedAt).toISOString(),
      completedAt: new Date(endedAt).toISOString(),
      durationMs: Math.max(0, endedAt - startedAt),
    };
  }
}
