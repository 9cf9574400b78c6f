import * as v from "valibot";

/** The newest lines of the log of this process. Positions count from 1 and never change. */
export interface LineSource {
  /** Position of the newest line; 0 without a line. */
  readonly newest: number;
  /** Position of the oldest kept line; `newest + 1` if no line is kept. */
  readonly oldest: number;
  /** The text of a line, which is one JSON object. Undefined if the line is not kept. */
  at(position: number): string | undefined;
  /** Resolves when a line after this position was added. Rejects with the reason of the signal when it aborts. */
  after(position: number, signal: AbortSignal): Promise<void>;
}

/** Options of the page of the log. */
export const logConfig = v.strictObject({
  /** `createRecentLines()` of `@portico/adapters/telemetry/recent-lines` creates one. */
  lines: v.custom<LineSource>(
    (value) => typeof (value as LineSource | undefined)?.after === "function",
    "the newest lines of a log",
  ),
  /** Areas of the service that readers are told of, with those of the kept lines. Default: none. */
  areas: v.optional(
    v.custom<() => readonly string[]>((value) => typeof value === "function", "a function that returns names"),
    () => () => [],
  ),
  /** Names the answering process, which is one of several in a cluster. */
  process: v.strictObject({ host: v.string(), pid: v.number() }),
});
