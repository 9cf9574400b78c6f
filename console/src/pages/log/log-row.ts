import { routeTo } from "../../shell/route.svelte.ts";

/** A line of the log, as the service sends it. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A row of the list: a line, or a note about lines that are not in the list. */
export type LogRow = { readonly key: number } & ({ readonly line: LogLine } | { readonly note: string });

/** What a line says, for people. */
export interface ShownLine {
  readonly what: string;
  /** The process that wrote it: `HOST/PID`. */
  readonly process: string | undefined;
  readonly area: string | undefined;
  readonly fields: readonly { readonly name: string; readonly value: string }[];
  /** Stack frames of the errors that are the reason, with their names. */
  readonly stack: string | undefined;
  /** The page of the run that the line is about. */
  readonly run: string | undefined;
}

interface Cause {
  readonly name: string;
  readonly code?: string | number;
  readonly at?: readonly string[];
  readonly cause?: Cause;
}

export function showLine({ level: _level, time: _time, msg, area, cause, process, ...fields }: LogLine): ShownLine {
  const isRequest = msg === "request" && "route" in fields;
  const { method, route, status, ms, ...others } = fields;
  return {
    what: isRequest ? `${String(status)} ${String(method)} ${String(route)} ${String(ms)} ms` : msg,
    process: typeof process === "string" ? process : undefined,
    area: typeof area === "string" ? area : undefined,
    fields: [
      ...Object.entries(isRequest ? others : fields).map(([name, value]) => ({ name, value: String(value) })),
      ...(cause ? [{ name: "cause", value: causeText(cause as Cause) }] : []),
    ],
    stack: cause ? stackText(cause as Cause) : undefined,
    run: runOf(fields),
  };
}

function causeText({ name, code }: Cause): string {
  return code === undefined ? name : `${name} (${code})`;
}

function stackText(error: Cause): string | undefined {
  const frames = (error.at ?? []).map((frame) => `  at ${frame}`);
  const inner = error.cause && `because of ${stackText(error.cause) ?? causeText(error.cause)}`;
  return frames.length === 0 && !inner ? undefined : [causeText(error), ...frames, ...(inner ? [inner] : [])].join("\n");
}

function runOf({ run, runId, workflow }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof run === "string") return routeTo("runs", run);
  if (typeof runId === "string" && typeof workflow === "string") return routeTo("workflows", workflow, runId);
  return undefined;
}
