import { type KINDS, LEVELS } from "./contract.ts";

/** Programs that look through many lines let other work go on after this number of them. */
export const LINES_AT_ONCE = 100;

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

/** A line of the log, parsed. */
export interface LogLine {
  readonly level: (typeof LEVELS)[number];
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Which lines a reader wants. An absent part allows every line. */
export interface WantedLines {
  readonly level?: LogLine["level"] | undefined;
  readonly kind?: (typeof KINDS)[number] | undefined;
  readonly area?: string | undefined;
  readonly text?: string | undefined;
  readonly id?: string | undefined;
}

/** The fields that name a request, a run, a turn or a trace. */
const ID_FIELDS = ["request", "callerRequestId", "traceId", "run", "runId", "turn"];

/** The fields that name a run of an agent, a workflow run or a turn. */
const WORK_FIELDS = ["run", "runId", "turn"];

/** Returns a function that parses the text of a line. It returns undefined for a line that the reader does not want. */
export function createLineFilter({ level, kind, area, text, id }: WantedLines): (line: string) => LogLine | undefined {
  const quieter = LEVELS.slice(0, level ? LEVELS.indexOf(level) : 0);
  const words = text?.toLowerCase();
  return (written) => {
    const line = JSON.parse(written) as LogLine;
    if (quieter.includes(line.level)) return undefined;
    if (kind !== undefined && !isOfKind(line, kind)) return undefined;
    if (area !== undefined && line["area"] !== area) return undefined;
    if (id !== undefined && !ID_FIELDS.some((field) => line[field] === id)) return undefined;
    if (words !== undefined && !textOf(line).includes(words)) return undefined;
    return line;
  };
}

function isOfKind(line: LogLine, kind: (typeof KINDS)[number]): boolean {
  const isRequest = line.msg === "request" && "route" in line;
  if (kind === "request") return isRequest;
  return !isRequest && (kind === "message" || WORK_FIELDS.some((field) => field in line));
}

function textOf({ level: _level, time: _time, ...fields }: LogLine): string {
  return Object.values(fields)
    .map((value) => (typeof value === "object" ? JSON.stringify(value) : String(value)))
    .join("\n")
    .toLowerCase();
}
