import { describeCause, type ports } from "@portico/core";
import pino, { type Logger } from "pino";
import { createLineBatch, type LogDestination } from "./line-batch.ts";
import { type EndedRequest, shortened } from "./request-record.ts";
import { textLine } from "./text-line.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";
export type LogFormat = "json" | "text";

export interface LogLines {
  readonly log: ports.Log;
  request(ended: EndedRequest): void;
  /** Everything that was logged has left the process when this returns. */
  close(): void;
}

const STANDARD_ERROR = 2;
/** Flushing waits for the disk: errors in a row are flushed together, so that a broken upstream does not stop everybody else. */
const FLUSH_EVERY_MS = 50;
const CALLER_LEFT = 499;

/** Log lines with pino. Only declared fields of plain values are written, so that no secret, prompt or body can hang on one. */
export function createLogLines(options: { level?: LogLevel; format?: LogFormat; destination?: LogDestination }): LogLines {
  const batch = createLineBatch(options.destination ?? pino.destination({ dest: STANDARD_ERROR, sync: false }));
  const logger = pino(
    {
      level: options.level ?? "info",
      base: null,
      timestamp: createTimestamp(),
      formatters: { level: (label) => ({ level: label }) },
    },
    options.format === "text" ? { write: (line: string) => batch.write(textLine(line)) } : batch,
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
    request: (ended) => writeRequest(logger, ended),
    close: batch.close,
  };
}

/** Under load many lines fall into one millisecond: its text is made once. */
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

function writeRequest(logger: Logger, { request, facts, status, error, beganAt, endedAt }: EndedRequest): void {
  logger[levelOf(status, error)](
    {
      request: request.id,
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
    },
    "request",
  );
}

/** A caller that leaves is everyday life; an answer that broke after a good head is not. */
function levelOf(status: number, error: string | undefined): "info" | "warn" | "error" {
  if (status >= 500) return "error";
  if (status === CALLER_LEFT) return "info";
  return status >= 400 || error !== undefined ? "warn" : "info";
}

/** The types allow plain values only; an object that slipped past them is left out rather than written. */
function plainFields(fields: ports.LogFields = {}): Record<string, string | number | boolean> {
  const plain: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === "string") plain[name] = shortened(value) ?? "";
    else if (typeof value === "number" || typeof value === "boolean") plain[name] = value;
  }
  return plain;
}

function withCause(fields: ports.LogFields | undefined, cause: unknown): object {
  return cause === undefined ? plainFields(fields) : { ...plainFields(fields), cause: describeCause(cause) };
}
