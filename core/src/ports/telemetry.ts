import { definePort, type Port } from "../port.ts";

/** What the app tells its operators. Never a secret, a prompt or a body: callers pass names, numbers and codes. */
export interface Telemetry {
  readonly log: Log;
  /** Begin to measure one request: its log line, span and metrics are written by `end`. */
  begin(request: RequestBegin): RequestTrace;
}

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  /**
   * Of `cause` its name, code and stack frames are written, and those of its own causes. Never its message: messages quote addresses,
   * tokens and what callers sent.
   */
  warn(message: string, fields?: LogFields, cause?: unknown): void;
  error(message: string, fields?: LogFields, cause?: unknown): void;
}

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface RequestBegin {
  readonly id: string;
  /** The plugin that answers, or the surface where no plugin matched. */
  readonly area: string;
  /** Contract key, for example `model-proxy.messages`; `unmatched` where there is none. */
  readonly route: string;
  readonly method: string;
  /** The route's path as declared, for example `/api/hello/:name`; `""` where there is none. Never the path that was called. */
  readonly path: string;
  readonly scheme: "http" | "https";
  /** Reads a request header by its lowercase name: for trace context that the caller sent. */
  header(name: string): string | undefined;
}

export interface RequestTrace {
  /** Add what becomes known on the way; later calls win field by field. */
  note(facts: RequestFacts): void;
  /** The request ended. Only the first call counts; `status` is what was sent, or 499 when the caller left before an answer. */
  end(outcome: { readonly status: number; readonly error?: string }): void;
}

export interface RequestFacts {
  /** Provider configuration id and provider type. */
  readonly provider?: string;
  readonly providerType?: string;
  /** Once it is known to be served: it becomes a label of metrics, and callers can invent any number of names. */
  readonly model?: string;
  /** Whether the request was converted between protocols. */
  readonly converted?: boolean;
  /** Whether the caller asked for a stream; only then `firstByteMs` becomes a metric. */
  readonly streamed?: boolean;
  /** Name of the generative-AI operation (OpenTelemetry semantic conventions): `chat`. */
  readonly operation?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** Milliseconds from the request to the first byte of the upstream's answer. */
  readonly firstByteMs?: number;
}

export const telemetry: Port<Telemetry> = definePort<Telemetry>("telemetry");
