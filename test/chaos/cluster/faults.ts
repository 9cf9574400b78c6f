import { setTimeout as sleep } from "node:timers/promises";
import type { PorticoProcess } from "../../harness/portico-process.ts";
import { LEASE_MS, type Stage } from "./stage.ts";

/** The kinds of faults. `kill` and `freeze` concern one process, which comes back. */
export type Fault = "kill" | "freeze" | "wipe Redis" | "kill Redis" | "restart PostgreSQL" | "crash PostgreSQL";

/** Makes processes and servers fail, one after another, and records it. */
export class Faults {
  readonly #stage: Stage;
  readonly #killed = new Set<PorticoProcess>();
  readonly counts: Record<string, number> = {};

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Resolves when the failed process or server is back. */
  async cause(fault: Fault): Promise<void> {
    const { postgres, redis } = this.#stage;
    this.counts[fault] = (this.counts[fault] ?? 0) + 1;
    switch (fault) {
      case "kill":
        return this.#kill(this.#anyProcess());
      case "freeze":
        return this.#freeze(this.#anyProcess());
      case "wipe Redis":
        return void (await redis.ask("FLUSHALL"));
      case "kill Redis":
        await redis.kill();
        await sleep(Math.random() * 1000);
        return redis.start();
      case "restart PostgreSQL":
      case "crash PostgreSQL":
        await postgres.stop(fault === "restart PostgreSQL" ? "fast" : "immediate");
        await sleep(Math.random() * 2000);
        return postgres.start();
    }
  }

  get living(): readonly PorticoProcess[] {
    return this.#stage.cluster.processes.filter((each) => !this.#killed.has(each));
  }

  #anyProcess(): PorticoProcess {
    const { living } = this;
    return living[Math.floor(Math.random() * living.length)]!;
  }

  async #kill(process: PorticoProcess): Promise<void> {
    this.#killed.add(process);
    process.signal("SIGKILL");
    await process.exited;
    // A start can fail because a server is slow. It is repeated, as a supervisor does.
    for (let isStarted = false; !isStarted;) isStarted = await this.#stage.cluster.add().then(() => true, isUnavailable);
  }

  /** Longer than the process's lease. */
  async #freeze(process: PorticoProcess): Promise<void> {
    process.signal("SIGSTOP");
    await sleep(LEASE_MS + 500 + Math.random() * 1500);
    process.signal("SIGCONT");
  }
}

/** False if a start ended because a server did not answer (exit code 69). Throws other errors. */
function isUnavailable(error: unknown): false {
  if (error instanceof Error && error.message.startsWith("portico start ended with 69")) return false;
  throw error;
}
