import {
  type Attributes,
  type Context,
  type HrTime,
  isSpanContextValid,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { ports } from "@portico/core";
import type { EndedCall } from "./ended-call.ts";
import type { Instruments } from "./instruments.ts";
import type { EndedRequest, RunningSpan } from "./request-record.ts";
import { CALLER_LEFT, errorType, httpMethod } from "./semantic-names.ts";
import { parseTraceparent } from "./traceparent.ts";

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

function callAttributes({ source, operation, facts }: EndedCall): Attributes {
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
