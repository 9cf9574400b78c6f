import { setImmediate as nextTurn } from "node:timers/promises";
import { ports } from "@portico/core";
import type { NodePlay } from "../play-attempts.ts";
import { AttemptsFailed, type NodeResult } from "../play-node.ts";
import { innerGraph, innerResult } from "./inner.ts";

const CONCURRENCY = 8;
/** So many items are begun in one turn of the event loop: quick ones would hold it for all. */
const ITEMS_PER_TURN = 32;

/** Plays its nodes for each item, some at a time, in order. The first item that fails fails the node. */
export async function playMap(play: NodePlay): Promise<NodeResult> {
  const { inputs, frame } = play;
  const { items, concurrency = CONCURRENCY } = inputs;
  if (!Array.isArray(items)) throw new ports.NodeFailed("invalid_input", "with.items: expected a list", { retryable: false });
  const over = new AbortController();
  const abort = () => over.abort(frame.signal.reason);
  frame.signal.addEventListener("abort", abort, { once: true });
  const inner = innerGraph(play, over.signal);
  const results: unknown[] = Array.from({ length: items.length }, () => null);
  let next = 0;
  let failure: AttemptsFailed | undefined;
  const work = async (): Promise<void> => {
    while (next < items.length && !over.signal.aborted) {
      const index = next++;
      if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await nextTurn();
      const { frame: played, outcome } = await inner({ item: items[index], index });
      if (outcome.type === "completed") results[index] = innerResult(play, played);
      else if (outcome.type === "failed") {
        failure ??= new AttemptsFailed(outcome.error, 1);
        over.abort();
      }
    }
  };
  try {
    const workers = Array.from({ length: Math.min(Number(concurrency), items.length) }, () =>
      work().catch((error: unknown) => {
        over.abort();
        throw error;
      }),
    );
    const thrown = (await Promise.allSettled(workers)).find((worker) => worker.status === "rejected");
    if (thrown) throw thrown.reason;
  } finally {
    frame.signal.removeEventListener("abort", abort);
  }
  if (failure) throw failure;
  frame.signal.throwIfAborted();
  return { output: results, attempts: 1 };
}
