import { describeCause, type ports } from "@portico/core";
import pino from "pino";
import { createLineBatch, type LogDestination } from "./line-batch.ts";
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
export function createLogLines(options: { level?: LogLevel; format?: LogFormat; destination?: LogDestination }): LogLines {
  const batch = createLineBatch(options.destination ?? pino.destination({ dest: STANDARD_ERROR, sync: false }));
  const timestamp = createTimestamp();
  const out = options.format === "text" ? { write: (line: string) => batch.write(textLine(line)) } : batch;
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

  return {
    log: {
      debug: (message, fields) => logger.debug(plainFields(fields), message),
      info: (message, fields) => logger.info(plainFields(fields), message),
      warn: (message, fields, cause) => logger.warn(withCause(fields, cause), message),
      error(message, fields, cause) {
        logger.error(withCause(fields, cause), message);
        flushErrors();
      },
    },
    request(ended) {
      const level = levelOf(ended.status, ended.error);
      // The same format as pino, in half of the time: every request has one such line.
      if (logger.isLevelEnabled(level)) out.write(`{"level":"${level}"${timestamp()},${requestFields(ended).slice(1)}\n`);
    },
    close: batch.close,
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

/** The fields of a request's line as JSON. Undefined fields are left out. */
function requestFields({ request, traceId, facts, status, error, beganAt, endedAt }: EndedRequest): string {
  return JSON.stringify({
    request: request.id,
    callerRequestId: request.callerRequestId,
    traceId,
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
  });
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

function withCause(fields: ports.LogFields | undefined, cause: unknown): object {
  return cause === undefined ? plainFields(fields) : { ...plainFields(fields), cause: describeCause(cause) };
}
