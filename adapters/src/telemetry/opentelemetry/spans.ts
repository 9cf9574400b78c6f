import {
  type Attributes,
  type Context,
  type HrTime,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from "@opentelemetry/api";
import type { ports } from "@portico/core";
import type { Instruments } from "./instruments.ts";
import {
  CALLER_LEFT,
  type EndedCall,
  type EndedRequest,
  type EndedWork,
  errorType,
  httpMethod,
  type RunningSpan,
  shortened,
} from "./request-record.ts";

export interface RequestSpan extends RunningSpan {
  end(ended: EndedRequest, call: EndedCall | undefined): void;
}

export interface RequestSpans {
  begin(request: ports.RequestBegin): RequestSpan;
  /** A model call without a request, under the host's active span if there is one. */
  call(ended: EndedCall): void;
}

/**
 * Two spans, as the conventions require: the request (server, `POST /v1/messages`) and, for a request with a model call, the
 * model call within it (client, `chat m-large`). The parent is the host's own active span, or else the caller's `traceparent`,
 * read by the host's propagator.
 */
export function createRequestSpans({ tracer, contexts, extract, isTraced }: Instruments): RequestSpans {
  const tellCall = (ended: EndedCall, beganAt: HrTime, endedAt: HrTime, parent: Context) => {
    const { model } = ended.facts;
    const span = tracer.startSpan(
      model === undefined ? ended.operation : `${ended.operation} ${model}`,
      { kind: SpanKind.CLIENT, startTime: beganAt, attributes: callAttributes(ended) },
      parent,
    );
    finish(span, ended.error, ended.error !== undefined, endedAt);
  };
  const parentOf = (request: ports.RequestBegin): Context => {
    const active = contexts.active();
    return trace.getSpan(active) ? active : extract(active, request, CARRIER);
  };
  return {
    call(ended) {
      if (!isTraced()) return;
      const now = Date.now();
      tellCall(ended, toHrTime(now - (ended.endedAt - ended.beganAt)), toHrTime(now), contexts.active());
    },
    begin(request) {
      const parent = parentOf(request);
      // The log still has the caller's trace id.
      if (!isTraced() && !trace.getSpan(parent)) return withoutSpan(parseTraceparent(request.header("traceparent"))?.traceId);
      // The wall clock gives the beginning, the monotonic clock the duration: both spans have the same beginning and end.
      const beganAt = Date.now() - (request.beganMsAgo ?? 0);
      const method = httpMethod(request.method);
      const name = method === "_OTHER" ? "HTTP" : method;
      const span = tracer.startSpan(
        request.path === "" ? name : `${name} ${request.path}`,
        { kind: SpanKind.SERVER, startTime: toHrTime(beganAt), attributes: requestAttributes(request, method) },
        parent,
      );
      const spanContext = span.spanContext();
      if (!isSpanContextValid(spanContext)) return withoutSpan(parseTraceparent(request.header("traceparent"))?.traceId);
      const { traceId } = spanContext;
      const within = trace.setSpan(parent, span);
      const run = <T>(work: () => T): T => contexts.with(within, work);
      if (!span.isRecording()) return { traceId, span: undefined, run, end() {} };
      return {
        traceId,
        span: spanContext,
        run,
        end(ended, call) {
          const endedAt = toHrTime(beganAt + ended.endedAt - ended.beganAt);
          if (call) tellCall(call, toHrTime(beganAt), endedAt, within);
          span.setAttribute("http.response.status_code", ended.status);
          const error = errorType(ended);
          // Errors of the caller are not errors of the server.
          const isBroken = ended.status < 400 && error !== undefined && error !== CALLER_LEFT.error;
          finish(span, error, ended.status >= 500 || isBroken, endedAt);
        },
      };
    },
  };
}

/** Most requests without an SDK have no trace context either: they share one object. */
function withoutSpan(traceId: string | undefined): RequestSpan {
  return traceId === undefined ? NO_SPAN : { ...NO_SPAN, traceId };
}

const NO_SPAN: RequestSpan = { traceId: undefined, span: undefined, run: (work) => work(), end() {} };

/** Only headers that a propagator requests are read. They are not listed. */
const CARRIER = {
  keys: () => [],
  get: (request: ports.RequestBegin, name: string) => request.header(name.toLowerCase()),
};

function requestAttributes(request: ports.RequestBegin, method: string): Attributes {
  return {
    "http.request.method": method,
    "url.scheme": request.scheme,
    ...(request.path !== "" && { "http.route": request.path }),
    "portico.request.id": request.id,
    "portico.area": request.area,
    "portico.route": request.route,
  };
}

function callAttributes({ source, operation, facts, dropped }: EndedCall): Attributes {
  return {
    "portico.source": source,
    "gen_ai.operation.name": operation,
    "gen_ai.provider.name": facts.providerType ?? "unknown",
    "gen_ai.request.model": facts.model,
    "gen_ai.usage.input_tokens": facts.inputTokens,
    "gen_ai.usage.output_tokens": facts.outputTokens,
    ...(facts.streamed && facts.firstByteMs !== undefined && { "gen_ai.response.time_to_first_chunk": facts.firstByteMs / 1000 }),
    "portico.provider": facts.provider,
    "portico.converted": facts.converted,
    "portico.dropped": dropped,
  };
}

function finish(span: Span, error: string | undefined, isFailure: boolean, endedAt: HrTime): void {
  if (error !== undefined) span.setAttribute("error.type", error);
  if (isFailure) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endedAt);
}

function toHrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.round((epochMs - seconds * 1000) * 1_000_000)];
}

export interface WorkSpans {
  begin(work: ports.WorkBegin, ended: (work: EndedWork) => void): ports.WorkTrace;
  /** The `traceparent` of the present span. */
  traceparent(): string | undefined;
}

/** Spans of turns and their parts, tools, runs and nodes. Names follow the generative-AI conventions where they have one. */
export function createWorkSpans({ tracer, contexts }: Instruments, hasContent = false): WorkSpans {
  return {
    traceparent: () => traceparentOf(trace.getSpanContext(contexts.active())),
    begin(work, ended) {
      const beganAt = performance.now();
      const { name, attributes } = described(work);
      const parent = parentOf(work, contexts.active());
      const beganMsAgo = "beganMsAgo" in work ? Math.max(0, work.beganMsAgo ?? 0) : 0;
      const startTime = Date.now() - beganMsAgo;
      const span = tracer.startSpan(name, { attributes, ...(beganMsAgo > 0 && { startTime }) }, parent);
      const within = trace.setSpan(parent, span);
      let isOver = false;
      return {
        run: (run) => contexts.with(within, run),
        ...(hasContent && {
          content(read: () => ports.WorkContent) {
            if (!isOver && span.isRecording()) span.setAttributes(contentAttributes(work.kind, read()));
          },
        }),
        end({ error } = {}) {
          if (isOver) return;
          isOver = true;
          const code = shortened(error);
          if (code !== undefined) span.setAttribute("error.type", code).setStatus({ code: SpanStatusCode.ERROR });
          if (work.kind === "phase") return span.end(startTime + Math.max(0, work.lastedMs));
          span.end();
          ended({ kind: work.kind, error: code, beganAt, endedAt: performance.now() });
        },
      };
    },
  };
}

/**
 * Accepted work continues the trace that was stored with it. What happens to be active where the engine begins it may belong to
 * another work.
 */
function parentOf(work: ports.WorkBegin, active: Context): Context {
  if (work.kind !== "turn" && work.kind !== "run") return active;
  const stored = parseTraceparent(work.traceparent);
  return stored ? trace.setSpanContext(ROOT_CONTEXT, stored) : ROOT_CONTEXT;
}

function described(work: ports.WorkBegin): { readonly name: string; readonly attributes: Attributes } {
  switch (work.kind) {
    case "turn":
      return {
        name: `invoke_agent ${shortened(work.agent)}`,
        attributes: {
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.agent.id": shortened(work.agent),
          "portico.run.id": work.run,
          "portico.turn.id": work.turn,
        },
      };
    case "phase":
      return { name: shortened(work.phase)!, attributes: { "portico.phase": shortened(work.phase) } };
    case "tool":
      return {
        name: `execute_tool ${shortened(work.tool)}`,
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": shortened(work.tool),
          "portico.tool.source": work.source,
        },
      };
    case "run":
      return {
        name: `workflow ${shortened(work.workflow)}`,
        attributes: {
          "portico.workflow.id": shortened(work.workflow),
          "portico.run.id": work.run,
          "portico.attempt": work.attempt,
        },
      };
    case "node":
      return {
        name: `node ${shortened(work.type)}`,
        attributes: {
          "portico.node.type": shortened(work.type),
          "portico.node.id": shortened(work.node),
          "portico.run.id": work.run,
          "portico.attempt": work.attempt,
        },
      };
  }
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Parses a `traceparent` (W3C Trace Context). Undefined if it is invalid. The ids are only names for logs and spans, because any
 * caller can send any ids.
 */
export function parseTraceparent(traceparent: string | undefined): SpanContext | undefined {
  const found = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  // Only later versions may have more parts.
  if (!found || (traceparent!.startsWith("00") && found[4] !== undefined)) return undefined;
  const [, traceId, spanId, flags] = found;
  return { traceId: traceId!, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** The `traceparent` that continues a span. Undefined without a span. */
export function traceparentOf(span: SpanContext | undefined): string | undefined {
  if (!span || !isSpanContextValid(span)) return undefined;
  return `00-${span.traceId}-${span.spanId}-0${span.traceFlags & TraceFlags.SAMPLED}`;
}

/** Characters of a text in an attribute. */
const CONTENT_CHARACTERS = 16 * 1024;

/** The content of work as attributes of the generative-AI conventions. Work without a convention has none. */
export function contentAttributes(kind: ports.WorkBegin["kind"], { input, output }: ports.WorkContent): Attributes {
  switch (kind) {
    case "turn":
      return {
        ...(input !== undefined && { "gen_ai.input.messages": message("user", input) }),
        ...(output !== undefined && { "gen_ai.output.messages": message("assistant", output) }),
      };
    case "tool":
      return {
        ...(input !== undefined && { "gen_ai.tool.call.arguments": cut(toJson(input)) }),
        ...(output !== undefined && { "gen_ai.tool.call.result": cut(toJson(output)) }),
      };
    default:
      return {};
  }
}

function message(role: "user" | "assistant", content: unknown): string {
  const text = typeof content === "string" ? content : toJson(content);
  return JSON.stringify([{ role, parts: [{ type: "text", content: cut(text) }] }]);
}

const toJson = (value: unknown): string => JSON.stringify(value) ?? "null";
const cut = (text: string): string =>
  text.length <= CONTENT_CHARACTERS ? text : `${text.slice(0, CONTENT_CHARACTERS).toWellFormed()}…`;
