import type { WantedLines } from "./line-filter.ts";

/** Which lines the readers of a process want from all processes. Without any, the process follows no longer. */
export interface Followers {
  /** Id of the process. */
  readonly process: string;
  /** One for each reader. */
  readonly wanted: readonly WantedLines[];
}

/** Lines that a process sends to those that follow. */
export interface SentLines {
  readonly process: ProcessName;
  /** How many lines it sent or left out before this message, since its start. */
  readonly before: number;
  /** Texts of JSON objects, the oldest first. */
  readonly lines: readonly string[];
  /** How many lines it left out before these, because they were too many. */
  readonly missed: number;
}

/** A process of the instance. The id is new after each start. */
export interface ProcessName {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
}

export const FOLLOWERS_TOPIC = "log/followers";
export const LINES_TOPIC = "log/lines";
