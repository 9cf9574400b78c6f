import { CallFailed, type CallResult, type Client } from "@portico/core/client";
import type { logContract } from "@portico/operator/log/contract";
import { pause } from "../../api/pause.ts";
import type { LogLine, LogRow } from "./log-row.ts";

/** Rows in the document. Older rows are dropped. */
export const MOST_ROWS = 300;
/** Lines within this time are shown together. */
const SHOW_MS = 100;
const RETRY_MS = 3_000;

type LogEvent = CallResult<typeof logContract.follow> extends AsyncIterable<infer E> ? E : never;
type Process = Extract<LogEvent, { readonly event: "log:opened" }>["data"]["process"];

/** Follows the log of the service, and connects again if the connection breaks. The newest row is the first. */
export class LogFollower {
  rows = $state.raw<readonly LogRow[]>([]);
  connection = $state<"opening" | "live" | "cut">("opening");
  process = $state.raw<Process>();
  /** The names of all processes that wrote lines, and of the one that answers: `HOST/PID`. */
  processes = $state.raw<ReadonlySet<string>>(new Set());
  /** The areas that the service knows of. */
  areas = $state.raw<readonly string[]>([]);
  /** Why the log cannot be followed. */
  error = $state.raw<unknown>();
  /** The number of rows that wait while the list is paused. */
  waiting = $state(0);
  #isPaused = $state(false);
  readonly #calls: Client<typeof logContract>;
  readonly #query: Readonly<Record<string, string>>;
  #fresh: LogRow[] = [];
  #arrived = 0;
  #lastEventId: string | undefined;
  #showing: ReturnType<typeof setTimeout> | undefined;

  constructor(calls: Client<typeof logContract>, query: Readonly<Record<string, string>>) {
    this.#calls = calls;
    this.#query = query;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** While it is paused, the list does not change. New rows wait, as many as the list can have. */
  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    this.#show();
  }

  /** Empties the list. */
  clear(): void {
    this.#fresh = [];
    this.waiting = 0;
    this.rows = [];
  }

  /** Follows until the signal aborts, or until the service refuses it. Never rejects: a refusal is in `error`. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#listen(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (CallFailed.is(error) && error.status < 500) {
          this.error = error;
          return;
        }
      }
      if (signal.aborted) return;
      this.connection = "cut";
      await pause(RETRY_MS, signal).catch(() => {});
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const events = await this.#calls.follow({
      query: { ...this.#query, last: String(this.#lastEventId === undefined ? MOST_ROWS : 0) },
      ...(this.#lastEventId !== undefined && { headers: { "last-event-id": this.#lastEventId } }),
      signal,
    });
    for await (const event of events) {
      if (signal.aborted) return;
      this.#take(event);
    }
  }

  #take(event: LogEvent): void {
    this.#lastEventId = event.id ?? this.#lastEventId;
    switch (event.event) {
      case "log:opened": {
        const { process, isResumed, areas } = event.data;
        this.areas = areas;
        this.#see(`${process.host}/${process.pid}`);
        if (this.process && !isResumed)
          this.#add({ note: `From here on: process ${process.pid} on ${process.host}. Lines may be missing` });
        this.process = process;
        this.connection = "live";
        break;
      }
      case "log:missed":
        this.#add({ note: missedText(event.data) });
        break;
      case "log:line":
        this.#see(event.data.process);
        this.#add({ line: event.data as LogLine });
    }
  }

  #see(process: string | undefined): void {
    if (process !== undefined && !this.processes.has(process)) this.processes = new Set([...this.processes, process]);
  }

  #add(row: { readonly line: LogLine } | { readonly note: string }): void {
    this.#fresh.unshift({ ...row, key: ++this.#arrived });
    this.#showing ??= setTimeout(() => this.#show(), SHOW_MS);
  }

  #show(): void {
    clearTimeout(this.#showing);
    this.#showing = undefined;
    if (this.#fresh.length > MOST_ROWS) this.#fresh.length = MOST_ROWS;
    if (!this.#isPaused && this.#fresh.length > 0) {
      this.rows = [...this.#fresh, ...this.rows].slice(0, MOST_ROWS);
      this.#fresh = [];
    }
    this.waiting = this.#fresh.length;
  }
}

function missedText({ lines, process }: { readonly lines: number; readonly process?: string | undefined }): string {
  const source = process === undefined ? "" : ` of process ${process}`;
  return lines === 1 ? `1 line${source} was missed` : `${lines} lines${source} were missed`;
}
