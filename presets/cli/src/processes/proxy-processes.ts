import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { orAborted, type ports } from "@portico/core";
import { lastingSnapshot, type MetricsSnapshot, type RecentLines, sumSnapshots } from "@portico/presets/platform/proxy-process";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { packageFile } from "../own-command.ts";
import { type FromProcess, NUMBER_VARIABLE, type ProcessStart, type ToProcess } from "./messages.ts";

/** The wait before a process that ended is replaced. Each further one in a row waits twice as long. */
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 10_000;
/** A process that lived this long was not started in vain. */
const STEADY_MS = 60_000;
/** After as many processes in a row that ended early, another one would not help either. */
const MOST_IN_VAIN = 5;

/** A process whose event loop is blocked longer is shown as it was. */
const SNAPSHOT_MS = 1_000;
/** After the grace of a stop, a process closes its store. */
const CLOSE_MS = 6_000;

/** Options of `ProxyProcesses`. */
export interface ProxyProcessesOptions {
  readonly start: Omit<ProcessStart, "number" | "isReplacement">;
  readonly log: ports.Log;
  /** Where the log lines of the processes are kept. Undefined if the instance shows no log. */
  readonly recentLines: RecentLines | undefined;
  /** Called once if processes end again and again. The service cannot keep its number of processes. */
  readonly onCrashLoop: () => void;
}

/** The further processes that serve the proxy of this instance, which is the first one. One that ends is replaced. */
export class ProxyProcesses {
  readonly #options: ProxyProcessesOptions;
  readonly #running = new Map<number, FurtherProcess>();
  readonly #waiting = new Set<NodeJS.Timeout>();
  /** What ended processes measured. */
  #ended: MetricsSnapshot | undefined;
  /** A process that ends before all listen is not replaced: the start fails. */
  #isOpen = false;
  #isStopping = false;

  constructor(options: ProxyProcessesOptions) {
    this.#options = options;
  }

  /**
   * Resolves when all processes listen. Throws CommandFailed with the reason of a process that could not start, and the reason of the signal. Call
   * `stop` then, too.
   */
  async open(signal: AbortSignal): Promise<void> {
    const numbers = Array.from({ length: this.#options.start.count - 1 }, (_, index) => index + 2);
    await orAborted(Promise.all(numbers.map((number) => this.#launch(number, 0).ready)), signal);
    if (this.#running.size < numbers.length)
      throw new CommandFailed("A process of the model proxy ended while others started", EXIT.unavailable);
    this.#isOpen = true;
  }

  /** What all processes measured, also those that have ended: up to the last call of this method, or to a second ago. */
  async snapshots(): Promise<readonly MetricsSnapshot[]> {
    await Promise.all([...this.#running.values()].map((each) => each.measure()));
    // Only now, in one turn: a process that ended meanwhile is counted among the ended ones.
    const measured = [this.#ended, ...[...this.#running.values()].map(({ snapshot }) => snapshot)];
    return measured.filter((each) => each !== undefined);
  }

  /** The processes read their secrets again. */
  hangup(): void {
    for (const each of this.#running.values()) each.send({ kind: "hangup" });
  }

  /** Lets requests in flight finish for up to `graceMs`. Resolves when all processes have ended. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#waiting) clearTimeout(timer);
    await Promise.all([...this.#running.values()].map((each) => each.stop(graceMs)));
  }

  /** `inVain`: how many processes with this number ended early, one after another. */
  #launch(number: number, inVain: number): FurtherProcess {
    const { start, log, recentLines } = this.#options;
    const launched = new FurtherProcess({ ...start, number, isReplacement: this.#isOpen }, recentLines);
    this.#running.set(number, launched);
    // A failed start is reported when the process has ended.
    launched.ready.then(
      () => log.info("Another process serves the model proxy", { number, pid: launched.pid }),
      () => {},
    );
    void launched.ended.then(({ exitCode, signal, reason }) => {
      this.#running.delete(number);
      if (launched.snapshot) {
        const lasting = lastingSnapshot(launched.snapshot);
        this.#ended = this.#ended ? sumSnapshots([this.#ended, lasting]) : lasting;
      }
      if (this.#isStopping || !this.#isOpen) return;
      const wasteful = launched.ageMs() < STEADY_MS ? inVain + 1 : 1;
      const fields = { number, pid: launched.pid, exitCode, signal, reason };
      if (wasteful >= MOST_IN_VAIN) {
        log.error("Processes of the model proxy end again and again: stopping", { ...fields, count: wasteful });
        return this.#options.onCrashLoop();
      }
      const delayMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (wasteful - 1));
      log.warn("A process of the model proxy ended: another one replaces it", { ...fields, delayMs });
      const timer = setTimeout(() => {
        this.#waiting.delete(timer);
        this.#launch(number, wasteful);
      }, delayMs);
      this.#waiting.add(timer);
    });
    return launched;
  }
}

/** How a process ended. */
interface Ending {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** A sentence, if the process itself said why. */
  readonly reason: string | undefined;
}

class FurtherProcess {
  readonly #child: ChildProcess;
  readonly #beganAt = performance.now();
  readonly #measured = new Set<() => void>();
  /** Resolves when it listens. */
  readonly ready: Promise<void>;
  readonly ended: Promise<Ending>;
  /** The last one that arrived. */
  snapshot: MetricsSnapshot | undefined;

  constructor(start: ProcessStart, recentLines: RecentLines | undefined) {
    this.#child = fork(fileURLToPath(packageFile("portico.mjs")), process.argv.slice(2), {
      env: { ...process.env, [NUMBER_VARIABLE]: String(start.number) },
      serialization: "advanced",
      // Standard output has only the lines of the instance.
      stdio: ["ignore", 2, 2, "ipc"],
    });
    const ready = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<Ending>();
    let failure: { readonly message: string; readonly exitCode: number } | undefined;
    const end = (exitCode: number | null, signal: string | null, reason?: string) => {
      const words = failure?.message ?? reason ?? `ended with ${signal ?? exitCode}`;
      ready.reject(
        new CommandFailed(`Process ${start.number} of the model proxy: ${words}`, failure?.exitCode ?? EXIT.unavailable),
      );
      ended.resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined, reason: failure?.message ?? reason });
      for (const told of this.#measured) told();
    };
    this.#child.once("error", ({ message }) => end(null, null, message));
    this.#child.once("exit", end);
    this.#child.on("message", (message: FromProcess) => {
      if (message.kind === "ready") ready.resolve();
      else if (message.kind === "failed") failure = message;
      else if (message.kind === "lines") for (const line of message.lines) recentLines?.add(line);
      else {
        this.snapshot = message.snapshot;
        for (const told of this.#measured) told();
      }
    });
    this.ready = ready.promise;
    this.ended = ended.promise;
    this.send({ kind: "start", start });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  ageMs(): number {
    return performance.now() - this.#beganAt;
  }

  send(message: ToProcess): void {
    // A process that has just ended gets nothing, and its end is noticed.
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Resolves when a new snapshot has arrived, or none will arrive soon. */
  async measure(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#measured.add(resolve);
    const timer = setTimeout(resolve, SNAPSHOT_MS);
    this.send({ kind: "snapshot" });
    await promise;
    clearTimeout(timer);
    this.#measured.delete(resolve);
  }

  async stop(graceMs: number): Promise<void> {
    this.send({ kind: "stop", graceMs });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), graceMs + CLOSE_MS);
    await this.ended;
    clearTimeout(timer);
  }
}
