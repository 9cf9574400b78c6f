import { definePort, type Port } from "../grammar/port.ts";

/**
 * Information for the operators of the app. Never a secret, a prompt or a body: callers pass names, numbers and codes. The only exception is
 * `WorkTrace.content`.
 */
export interface Telemetry {
  readonly log: Log;
  /** Begin to measure one request: its log line, span and metrics are written by `end`. */
  begin(request: RequestBegin): RequestTrace;
  /**
   * Begin to measure one piece of work that is not a request: its span and its metrics are recorded by `end`. An execution that
   * stops before its work has ended, for example because it is parked, ends without an error, and is begun again later.
   */
  work(work: WorkBegin): WorkTrace;
  /**
   * The W3C `traceparent` of the request or work that calls. Send it to other services, and store it with accepted work.
   * Undefined without traces.
   */
  traceparent(): string | undefined;
  /** Record one ended model call that belongs to no request. Calls of the model proxy are recorded with their requests. */
  modelCall(call: MeasuredModelCall): void;
  /**
   * Report a number that changes by itself. It is read when metrics are collected, until the returned function is called. A gauge
   * that throws, or does not answer in a second, is left out. Gauges of one name and one help are one metric, to which each gives numbers
   * with labels of its own. Throws an Error for a name that a gauge with another help has.
   */
  gauge(gauge: Gauge): () => void;
}

/** A number that is read when metrics are collected: a state, not an event. */
export interface Gauge {
  /** Lowercase words joined by `_`, the unit last: `portico_engine_lease_age_seconds`. */
  readonly name: string;
  /** What the number means, in one sentence. */
  readonly help: string;
  /** Whether it counts what the process has done. Such a number stays valid after the end of the process. Default: it is a present state. */
  readonly isCount?: boolean | undefined;
  /** The present number, or numbers that differ in their labels. Undefined if it is not known now. */
  read(): GaugeReading | Promise<GaugeReading>;
}

/** A value that a gauge reads. */
export type GaugeReading = number | readonly GaugeValue[] | undefined;

/** One of several numbers of a gauge. */
export interface GaugeValue {
  /** Only few values are allowed: each combination is a separate time series, and a gauge has at most 2,000. */
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Writes log lines by level. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  /**
   * Of `cause` and of its own causes, only name, code and stack frames are written. Never a message: messages quote addresses,
   * tokens and input of callers.
   */
  warn(message: string, fields?: LogFields, cause?: unknown): void;
  error(message: string, fields?: LogFields, cause?: unknown): void;
}

/** Fields of a log line. Undefined fields are left out. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Facts about a request that are known at its beginning. */
export interface RequestBegin {
  readonly id: string;
  /** The caller's `x-request-id`, if it was accepted. Callers choose it, so it may not be unique. */
  readonly callerRequestId?: string | undefined;
  /** The plugin that answers, or the surface where no plugin matched. */
  readonly area: string;
  /** Contract key, for example `model-proxy.messages`; `unmatched` without a route; `host` if the host's own middleware or route answers. */
  readonly route: string;
  readonly method: string;
  /** The route's path as declared, for example `/api/hello/:name`; `""` without a route. Never the path of the request. */
  readonly path: string;
  readonly scheme: "http" | "https";
  /** Milliseconds since the request arrived, if its beginning is told late; default 0. */
  readonly beganMsAgo?: number;
  /** Reads a request header by its lowercase name, for the caller's trace context. */
  header(name: string): string | undefined;
}

/** One request in progress. */
export interface RequestTrace {
  /**
   * Add facts. They are read when the request ends: a handler may give one record at its beginning, and fill it as facts become known. Later calls
   * win field by field, and an undefined field is unknown.
   */
  note(facts: RequestFacts): void;
  /** Calls `work`, and returns or throws what it does. Spans and log lines of the work belong to the request. */
  run<T>(work: () => T): T;
  /**
   * The request ended. Only the first call counts. `status` is the sent status, or 499 if the caller left before an answer. An
   * error given to `note` takes precedence over this one.
   */
  end(outcome: { readonly status: number; readonly error?: string }): void;
}

/** One piece of work: a turn of an agent, a tool's call, the execution of a workflow run, an attempt of its node. */
export type WorkBegin =
  | {
      readonly kind: "turn";
      /** Ids of the agent, of its run, and of the turn. */
      readonly agent: string;
      readonly run: string;
      readonly turn: string;
      /** Stored with the turn when it was accepted. */
      readonly traceparent: string | undefined;
      /** Milliseconds since the turn arrived: its trace begins then. Default 0. */
      readonly beganMsAgo?: number;
    }
  | {
      /** A part of a turn, beside its model calls and tools: `admission`, `queue`, `start`, `delivery`. It has a span, and no metric. */
      readonly kind: "phase";
      readonly phase: string;
      /** Milliseconds since its beginning, and how long it lasted: told when it has ended. */
      readonly beganMsAgo: number;
      readonly lastedMs: number;
    }
  | {
      readonly kind: "tool";
      /** Ids of the tool, and of its source. */
      readonly tool: string;
      readonly source: string;
    }
  | {
      readonly kind: "run";
      /** Ids of the workflow, and of the run. */
      readonly workflow: string;
      readonly run: string;
      /** Counts from 1. */
      readonly attempt: number;
      /** Stored with the run when it was accepted. */
      readonly traceparent: string | undefined;
    }
  | {
      readonly kind: "node";
      readonly type: string;
      /** Ids of the node, and of the run. */
      readonly node: string;
      readonly run: string;
      /** Counts from 1. */
      readonly attempt: number;
    };

/** One piece of work in progress. */
export interface WorkTrace {
  /** Calls `work`, and returns or throws what it does. Spans and log lines within belong to this work. */
  run<T>(work: () => T): T;
  /**
   * The content of a turn or of a tool's call, before its end. Absent unless the operator's settings ask for content in traces. `read` is
   * called at once. It may return long texts: they are cut.
   */
  content?(read: () => WorkContent): void;
  /** The work ended. Only the first call counts. `error` is a code for why it failed. */
  end(outcome?: { readonly error?: string | undefined }): void;
}

/** What a piece of work was asked and what it answered. */
export interface WorkContent {
  /** The prompt of a turn as text, the arguments of a tool as JSON. */
  readonly input?: unknown;
  /** The answer of a turn as text, the result of a tool as JSON. */
  readonly output?: unknown;
}

/** Facts about a request that become known while it runs. */
export interface RequestFacts {
  /** Provider configuration id and provider type. */
  readonly provider?: string | undefined;
  readonly providerType?: string | undefined;
  /**
   * Set only after validation, to bound label cardinality: it becomes a metric label, and callers can invent any number of names.
   */
  readonly model?: string | undefined;
  /** Whether the request was converted between protocols. */
  readonly converted?: boolean | undefined;
  /** Whether the caller requested a stream. Only then `firstByteMs` becomes a metric. */
  readonly streamed?: boolean | undefined;
  /** Name of the generative-AI operation (OpenTelemetry semantic conventions): `chat`. */
  readonly operation?: string | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** Milliseconds from the request to the first byte of the upstream's answer. */
  readonly firstByteMs?: number | undefined;
  /** A code for why an answer failed after its status was sent: `upstream_broken`. */
  readonly error?: string | undefined;
}

/** One model call that ended. */
export interface MeasuredModelCall {
  /** The purpose of the call: `agent`, `workflow`. It becomes a metric label, so only few values are allowed. */
  readonly source: string;
  /** Provider configuration id and provider type. */
  readonly provider: string;
  readonly providerType: string;
  readonly model: string;
  /** Milliseconds from the call to the end of its answer. */
  readonly durationMs: number;
  /** Milliseconds from the call to the first part of a streamed answer. */
  readonly firstTokenMs?: number | undefined;
  /** Absent if the provider reported no number. Absent does not mean zero. */
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** What it cost, if usage is counted and its model has a price. */
  readonly cost?: number | undefined;
  readonly currency?: string | undefined;
  /** Fields of the request that were left out for this model, and content that a note replaces: `messages.content.image`. Names, no values. */
  readonly dropped?: readonly string[] | undefined;
  /** A code, if the call failed. */
  readonly error?: string | undefined;
}

/** The port of telemetry. */
export const telemetry: Port<Telemetry> = definePort<Telemetry>("telemetry");
