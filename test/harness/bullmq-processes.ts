import type { BullmqEngineOptions } from "@portico/cluster/engine/bullmq";
import type { ports } from "@portico/core";
import { type ClusterPlace, type ClusterProcess, createEngineCluster } from "./engine-cluster.ts";
import { type OpenEngine, openEngine } from "../conformance/engine-subject.ts";

/** The function of both kinds. It is told in which process it executes. */
export type Work = (context: ports.WorkContext, at: number) => Promise<unknown>;

/** An open process, with its lines to the servers. */
export type OpenedProcess = OpenEngine & ClusterProcess;

/** Processes of one test that share works in real time. */
export interface BullmqProcesses {
  readonly all: readonly OpenedProcess[];
  /** One more process, with a kind that is resumed, and one that is closed, which adds `closed ID` to `told`. */
  open(
    work: Work,
    options?: BullmqEngineOptions,
    kind?: Partial<ports.WorkOptions<object>>,
    define?: (engine: ports.Engine) => void,
  ): Promise<OpenedProcess>;
  close(): Promise<void>;
}

/** Processes with `engine/bullmq` over the stores of a place. */
export function createBullmqProcesses(place: ClusterPlace, told: string[]): BullmqProcesses {
  const cluster = createEngineCluster();
  const all: OpenedProcess[] = [];
  return {
    all,
    async open(work, options = {}, kind = {}, define = () => {}) {
      const at = all.length;
      const under = await cluster.open(place, { realTime: true, ...options });
      const opened = await openEngine(under, (engine) => {
        engine.define("resumed", (context) => work(context, at), { onInterrupted: "resume", ...kind });
        const closed = async (id: string): Promise<void> => void told.push(`closed ${id}`);
        engine.define("closed", (context) => work(context, at), { onInterrupted: "close", closed, ...kind });
        define(engine);
      });
      const process = { ...under, ...opened };
      all.push(process);
      await process.engine.ready();
      // From here on, it commits only what the test requests.
      await process.notes.get("none");
      return process;
    },
    async close() {
      for (const { postgres, redis } of all) {
        postgres.fate = () => "through";
        postgres.heal();
        redis.heal();
      }
      await Promise.all(all.map(({ close }) => close()));
      await cluster.close();
    },
  };
}

/** Something happens to the next commit of a process. Resolves when it happens. */
export function atNextCommit({ postgres }: OpenedProcess, fate: "hold" | "answer lost"): Promise<void> {
  return atNext(postgres, "COMMIT\0", fate);
}

/** Something happens to the next statement that contains a text. Resolves when it happens. */
export function atNext(line: ClusterProcess["postgres"], text: string, fate: "hold" | "answer lost"): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  line.fate = (sent) => {
    if (!sent.includes(text)) return "through";
    line.fate = () => "through";
    resolve();
    return fate;
  };
  return promise;
}
