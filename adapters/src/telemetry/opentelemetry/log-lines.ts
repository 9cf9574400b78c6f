import { trace } from "@opentelemetry/api";
import { describeCause, type ports } from "@portico/core";
import pino from "pino";
import type { Instruments } from "./instruments.ts";
import type { RecentLines } from "../recent-lines.ts";
import { createLineBatch, type LineBatch, type LogDestination } from "./line-batch.ts";
import { type EndedRequest, shortened } from "./request-record.ts";
import { CALLER_LEFT } from "./semantic-names.ts";
import { textLine } from "./text-line.ts";

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
  },
  { contexts, emit }: Pick<Instruments, "contexts" | "emit">,
): LogLines {
  const batch = createLineBatch(options.destination ?? pino.destination({ dest: STANDARD_ERROR, sync: false }));
  const timestamp = createTimestamp();
  const written = options.format === "text" ? { write: (line: string) => batch.write(textLine(line)) } : batch;
  const out = options.recentLines ? keeping(options.recentLines, written) : written;
  const logger = pino(
    {
      level: options.level ?? "info",
      base: null,
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
      out.write(`{"level":"${level}"${timestamp()}${members(fields)}}\n`);
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
const OF_EVERY_LINE: ReadonlySet<string> = new Set(["level", "time", "msg", "cause", "traceId", "spanId"]);

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
