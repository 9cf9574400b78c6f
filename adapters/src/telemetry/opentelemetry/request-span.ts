import {
  type Attributes,
  type Context,
  context,
  type HrTime,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { ports } from "@portico/core";
import type { EndedRequest } from "./request-record.ts";
import { errorType, httpMethod, SCOPE } from "./semantic-names.ts";

export interface RequestSpans {
  begin(request: ports.RequestBegin): { end(ended: EndedRequest): void };
}

/**
 * Two spans: the request (server, `POST /v1/messages`) and, where a model was called for it, the model call within (client,
 * `chat m-large`), as the conventions want them. The parent is the host's own span where one is active, or else the caller's `traceparent`,
 * read by whatever propagator the host installed.
 */
export function createRequestSpans(): RequestSpans {
  const tracer = trace.getTracer(SCOPE);
  return {
    begin(request) {
      const parent = parentOf(request);
      // The wall clock says when it began, the monotonic clock how long it took: so both spans have one beginning and one end.
      const beganAt = Date.now();
      const method = httpMethod(request.method);
      const name = method === "_OTHER" ? "HTTP" : method;
      const span = tracer.startSpan(
        request.path === "" ? name : `${name} ${request.path}`,
        { kind: SpanKind.SERVER, startTime: toHrTime(beganAt), attributes: requestAttributes(request, method) },
        parent,
      );
      if (!span.isRecording()) return NOT_RECORDED;
      return {
        end(ended) {
          const endedAt = toHrTime(beganAt + ended.endedAt - ended.beganAt);
          if (ended.facts.operation !== undefined) {
            const call = tracer.startSpan(
              ended.facts.model === undefined ? ended.facts.operation : `${ended.facts.operation} ${ended.facts.model}`,
              { kind: SpanKind.CLIENT, startTime: toHrTime(beganAt), attributes: callAttributes(ended) },
              trace.setSpan(parent, span),
            );
            finish(call, ended, 400, endedAt);
          }
          span.setAttribute("http.response.status_code", ended.status);
          finish(span, ended, 500, endedAt);
        },
      };
    },
  };
}

const NOT_RECORDED = { end() {} };

function parentOf(request: ports.RequestBegin): Context {
  const active = context.active();
  return trace.getSpan(active) ? active : propagation.extract(active, request, CARRIER);
}

/** Only what a propagator asks for is read; headers are not listed. */
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

function callAttributes({ facts }: EndedRequest): Attributes {
  return {
    "gen_ai.operation.name": facts.operation,
    "gen_ai.provider.name": facts.providerType ?? "unknown",
    "gen_ai.request.model": facts.model,
    "gen_ai.usage.input_tokens": facts.inputTokens,
    "gen_ai.usage.output_tokens": facts.outputTokens,
    ...(facts.streamed && facts.firstByteMs !== undefined && { "gen_ai.response.time_to_first_chunk": facts.firstByteMs / 1000 }),
    "portico.provider": facts.provider,
    "portico.converted": facts.converted,
  };
}

/** A server is not at fault for what its caller did wrong; for a client every refusal is a failure. */
function finish(span: Span, ended: EndedRequest, faultFrom: number, endedAt: HrTime): void {
  const type = errorType(ended);
  if (type !== undefined) span.setAttribute("error.type", type);
  if (ended.status >= faultFrom || (type !== undefined && ended.status < 400)) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endedAt);
}

function toHrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.round((epochMs - seconds * 1000) * 1_000_000)];
}
