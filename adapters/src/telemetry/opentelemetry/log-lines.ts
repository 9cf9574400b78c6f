import { trace } from "@opentelemetry/api";
import { describeCause, guardCall, type ports } from "@portico/core";
import pino from "pino";
import type { RecentLines } from "../recent-lines.ts";
import type { Instruments } from "./instruments.ts";
import { CALLER_LEFT, type EndedRequest, shortened } from "./request-record.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";
export type LogFormat = "json" | "text";

export interface LogLines {
  readonly log: ports.Log;
  request(ended: EndedRequest): void;
  /** When this returns, all log lines have left the process. */
  close(): void;
}

const STANDARD_ERROR = 2;
/**
 * Flushing waits for the disk. Errors in quick succession are flushed together, so that a broken upstream does not block other
 * requests.
 */
const FLUSH_EVERY_MS = 50;

/**
 * Log lines with pino. Only declared fields with plain values are written, so that no secret, prompt or body can be in a line.
 */
export function createLogLines(
  options: {
    readonly level?: LogLevel;
    readonly format?: LogFormat;
    readonly destination?: LogDestination;
    readonly recentLines?: Pick<RecentLines, "add"> | undefined;
    readonly proxyProcess?: number | undefined;
  },
  { contexts, emit }: Pick<Instruments, "contexts" | "emit">,
): LogLines {
  const batch = createLineBatch(options.destination ?? pino.destination({ dest: STANDARD_ERROR, sync: false }));
  const timestamp = createTimestamp();
  const written = options.format === "text" ? { write: (line: string) => batch.write(textLine(line)) } : batch;
  const out = options.recentLines ? keeping(options.recentLines, written) : written;
  const requestEnd = options.proxyProcess === undefined ? "}\n" : `,"proxyProcess":${options.proxyProcess}}\n`;
  const logger = pino(
    {
      level: options.level ?? "info",
      base: options.proxyProcess === undefined ? null : { proxyProcess: options.proxyProcess },
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
    },
    out,
  );
  let flushedAt = Number.NEGATIVE_INFINITY;
  const flushErrors = () => {
    const now = performance.now();
    if (now - flushedAt < FLUSH_EVERY_MS) return;
    flushedAt = now;
    batch.flush();
  };

  const write = (level: keyof ports.Log, message: string, fields: ports.LogFields | undefined, thrown?: unknown) => {
    if (!logger.isLevelEnabled(level)) return;
    // A span that has ended may still be active in a loop that began within it.
    const active = trace.getSpan(contexts.active());
    const span = active?.isRecording() ? active.spanContext() : undefined;
    const plain = plainFields(fields);
    const cause = thrown === undefined ? undefined : describeCause(thrown);
    logger[level]({ ...plain, ...(span && { traceId: span.traceId, spanId: span.spanId }), ...(cause && { cause }) }, message);
    emit?.({ level, message, fields: plain, cause, span });
  };

  return {
    log: {
      debug: (message, fields) => write("debug", message, fields),
      info: (message, fields) => write("info", message, fields),
      warn: (message, fields, cause) => write("warn", message, fields, cause),
      error(message, fields, cause) {
        write("error", message, fields, cause);
        flushErrors();
      },
    },
    request(ended) {
      const level = levelOf(ended.status, ended.error);
      if (!logger.isLevelEnabled(level)) return;
      const fields = requestFields(ended);
      // The same format as pino, in a quarter of the time: every request has one such line.
      out.write(`{"level":"${level}"${timestamp()}${members(fields)}${requestEnd}`);
      if (emit) emitRequest(emit, level, fields, ended);
    },
    close: batch.close,
  };
}

/** Also keeps the lines, always as JSON. */
function keeping(recent: Pick<RecentLines, "add">, out: Pick<LineBatch, "write">): Pick<LineBatch, "write"> {
  return {
    write(line) {
      recent.add(line);
      out.write(line);
    },
  };
}

/** Under load, many lines have the same millisecond: its text is made once. */
function createTimestamp(): () => string {
  let at = 0;
  let text = "";
  return () => {
    const now = Date.now();
    if (now !== at) {
      at = now;
      text = `,"time":"${new Date(now).toISOString()}"`;
    }
    return text;
  };
}

/** The fields of a request's line. Undefined fields are left out. */
function requestFields({ request, traceId, span, facts, status, error, beganAt, endedAt }: EndedRequest) {
  return {
    request: request.id,
    callerRequestId: request.callerRequestId,
    traceId,
    spanId: span?.spanId,
    area: request.area,
    route: request.route,
    method: request.method,
    status,
    ms: Math.round((endedAt - beganAt) * 10) / 10,
    provider: facts.provider,
    model: facts.model,
    converted: facts.converted,
    streamed: facts.streamed,
    inputTokens: facts.inputTokens,
    outputTokens: facts.outputTokens,
    firstByteMs: facts.firstByteMs,
    error,
    msg: "request",
  };
}

/** ASCII text that JSON writes unchanged. */
const UNESCAPED = /^[ !#-[\]-~]*$/;

/** The members of a JSON object, each after a comma. */
function members(fields: ReturnType<typeof requestFields>): string {
  let text = "";
  let name: keyof typeof fields;
  for (name in fields) {
    const value = fields[name];
    if (value === undefined) continue;
    text += `,"${name}":${typeof value === "string" && UNESCAPED.test(value) ? `"${value}"` : JSON.stringify(value)}`;
  }
  return text;
}

function emitRequest(
  emit: NonNullable<Instruments["emit"]>,
  level: keyof ports.Log,
  { msg, ...fields }: ReturnType<typeof requestFields>,
  { span }: EndedRequest,
): void {
  emit({ level, message: msg, fields, span });
}

/** A caller that leaves is normal. An answer that broke after a successful head is not. */
function levelOf(status: number, error: string | undefined): "info" | "warn" | "error" {
  if (status >= 500) return "error";
  if (status === CALLER_LEFT.status || error === CALLER_LEFT.error) return "info";
  return status >= 400 || error !== undefined ? "warn" : "info";
}

/** The fields that each line has, or that only the log itself writes. A second one of the same name would hide it from readers. */
const OF_EVERY_LINE: ReadonlySet<string> = new Set(["level", "time", "msg", "cause", "traceId", "spanId", "proxyProcess"]);

/** The types allow only plain values. An object in spite of the types is left out. */
function plainFields(fields: ports.LogFields = {}): Record<string, string | number | boolean> {
  const plain: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (OF_EVERY_LINE.has(name)) continue;
    if (typeof value === "string") plain[name] = shortened(value) ?? "";
    else if (typeof value === "number" || typeof value === "boolean") plain[name] = value;
  }
  return plain;
}

/**
 * Accepts text of one or more whole lines. A destination with a buffer may offer `flushSync`, called after errors and when the
 * app closes.
 */
export interface LogDestination {
  write(lines: string): unknown;
  flushSync?(): void;
}

export interface LineBatch {
  write(line: string): void;
  /** When this returns, everything written has left the process, as far as the destination can tell. */
  flush(): void;
  /** Flush, and remove the exit listener. */
  close(): void;
}

/** Under load, lines are gathered for this time. After a pause, a line is written at the end of its turn of the event loop. */
const GATHER_MS = 20;
/** Flush at this many lines without waiting. */
const MOST_LINES = 1_000;

/**
 * Writes lines in batches: a system call for each would cost more than all other parts of logging. Remaining lines are flushed
 * when the process exits, also after an uncaught exception.
 */
export function createLineBatch(destination: LogDestination): LineBatch {
  let lines: string[] = [];
  let handedOverAt = Number.NEGATIVE_INFINITY;
  const handOver = () => {
    if (lines.length === 0) return;
    handedOverAt = performance.now();
    const text = lines.length === 1 ? lines[0]! : lines.join("");
    lines = [];
    quietly(() => destination.write(text));
  };
  // A log that cannot be written, for example because its reader has ended, must not fail a request.
  const quietly = (run: () => unknown) => guardCall(run, () => {});
  const flush = () => {
    handOver();
    quietly(() => destination.flushSync?.());
  };
  process.on("exit", flush);
  return {
    write(line) {
      if (lines.length === 0) later(handedOverAt + GATHER_MS - performance.now(), handOver);
      lines.push(line);
      if (lines.length >= MOST_LINES) handOver();
    },
    flush,
    close() {
      flush();
      process.off("exit", flush);
    },
  };
}

function later(ms: number, run: () => void): void {
  if (ms > 0) setTimeout(run, ms).unref();
  else setImmediate(run);
}

/** Values that are written without quotes. All others are quoted, so that a value can never look like a separate line. */
const BARE = /^[\w./:@+~-]+$/;

interface LogLine {
  readonly level: string;
  readonly time: string;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

/** Formats one JSON log line for people: `12:03:04.123 WARN  401 POST model-proxy.messages 0.4ms …`. */
export function textLine(json: string): string {
  const { level, time, msg = "", ...fields } = JSON.parse(json) as LogLine;
  const start = `${time.slice("2030-01-01T".length, -1)} ${level.toUpperCase().padEnd(5)}`;
  return `${start} ${msg === "request" && "route" in fields ? requestText(fields) : `${line(msg)}${pairs(fields)}`}\n`;
}

function requestText(fields: Readonly<Record<string, unknown>>): string {
  const { status, method, route, ms, area: _area, ...rest } = fields;
  return `${text(status)} ${text(method)} ${text(route)} ${text(ms)}ms${pairs(rest)}`;
}

function pairs(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => ` ${text(name)}=${text(value)}`)
    .join("");
}

function text(value: unknown): string {
  return typeof value === "string" && BARE.test(value) ? value : JSON.stringify(value);
}

/** Messages come from the program, but may contain names that do not. */
function line(message: string): string {
  return message.replaceAll(/[\x00-\x1f\x7f\u2028\u2029]/g, " ");
}
