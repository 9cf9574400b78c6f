import type { SpanContext } from "@opentelemetry/api";
import type { ports } from "@portico/core";

/**
 * Maximum characters of a text that a caller may have chosen, such as a model's name: enough for any name, too few for a prompt.
 */
const TEXT_CHARACTERS = 200;

/** One ended request: the data of its log line, span and metrics. */
export interface EndedRequest {
  readonly request: ports.RequestBegin;
  /** Of the span, or else of the caller's `traceparent`. */
  readonly traceId: string | undefined;
  /** Its span, if it is recorded. */
  readonly span: SpanContext | undefined;
  readonly facts: ports.RequestFacts;
  readonly status: number;
  readonly error: string | undefined;
  /** Monotonic milliseconds, of the same clock as `performance.now()`. */
  readonly beganAt: number;
  readonly endedAt: number;
}

/** The part of a span that its request needs while it runs. */
export interface RunningSpan {
  readonly traceId: string | undefined;
  /** Undefined if it is not recorded. */
  readonly span: SpanContext | undefined;
  /** Calls `work` as a part of the span. */
  run<T>(work: () => T): T;
}

/** Holds the facts of one request until it ends. Only declared facts are read. Only the first `end` counts. */
export class RequestRecord implements ports.RequestTrace {
  readonly #request: ports.RequestBegin;
  readonly #span: RunningSpan;
  readonly #ended: (request: EndedRequest) => void;
  // Durations use a monotonic clock: a clock that is set back would give negative ones.
  readonly #beganAt: number;
  readonly #noted: ports.RequestFacts[] = [];
  #isOver = false;

  constructor(request: ports.RequestBegin, span: RunningSpan, ended: (request: EndedRequest) => void) {
    this.#beganAt = performance.now() - (request.beganMsAgo ?? 0);
    this.#request = request;
    this.#span = span;
    this.#ended = ended;
  }

  note(facts: ports.RequestFacts): void {
    if (!this.#isOver) this.#noted.push(facts);
  }

  run<T>(work: () => T): T {
    return this.#span.run(work);
  }

  end(outcome: { readonly status: number; readonly error?: string }): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const facts = factsOf(this.#noted);
    this.#ended({
      request: this.#request,
      traceId: this.#span.traceId,
      span: this.#span.span,
      facts,
      status: outcome.status,
      error: facts.error ?? shortened(outcome.error),
      beganAt: this.#beganAt,
      endedAt: performance.now(),
    });
  }
}

/** The declared facts of all notes. Later ones win field by field. */
function factsOf(noted: readonly ports.RequestFacts[]): ports.RequestFacts {
  let known: ports.RequestFacts = {};
  for (const facts of noted) {
    known = {
      provider: shortened(facts.provider) ?? known.provider,
      providerType: shortened(facts.providerType) ?? known.providerType,
      model: shortened(facts.model) ?? known.model,
      converted: facts.converted ?? known.converted,
      streamed: facts.streamed ?? known.streamed,
      operation: shortened(facts.operation) ?? known.operation,
      inputTokens: facts.inputTokens ?? known.inputTokens,
      outputTokens: facts.outputTokens ?? known.outputTokens,
      firstByteMs: facts.firstByteMs ?? known.firstByteMs,
      error: shortened(facts.error) ?? known.error,
    };
  }
  return known;
}

/** Cuts a text that is too long for a name. */
export function shortened(text: string | undefined): string | undefined {
  return text === undefined || text.length <= TEXT_CHARACTERS ? text : `${text.slice(0, TEXT_CHARACTERS)}…`;
}

/** One ended model call of any purpose: the data of its span and metrics. */
export interface EndedCall {
  /** `proxy`, `agent`, `workflow`. */
  readonly source: string;
  readonly facts: ports.RequestFacts;
  /** Name of the generative-AI operation. */
  readonly operation: string;
  /** Names of fields of its request that were left out. */
  readonly dropped?: string | undefined;
  /** Why it failed: a code, or a status. */
  readonly error: string | undefined;
  /** Monotonic milliseconds. */
  readonly beganAt: number;
  readonly endedAt: number;
}

/** The model call of a request. Undefined for a request without a model call. */
export function callOfRequest(ended: EndedRequest): EndedCall | undefined {
  const { facts, beganAt, endedAt } = ended;
  if (facts.operation === undefined) return undefined;
  return { source: "proxy", facts, operation: facts.operation, error: callErrorType(ended), beganAt, endedAt };
}

/** A model call without a request, which ended now. */
export function callOfItsOwn({ source, durationMs, error, dropped, ...facts }: ports.MeasuredModelCall): EndedCall {
  const endedAt = performance.now();
  const { provider, providerType, model, firstTokenMs, inputTokens, outputTokens } = facts;
  return {
    source,
    facts: {
      provider: shortened(provider)!,
      providerType: shortened(providerType)!,
      model: shortened(model)!,
      ...(firstTokenMs !== undefined && { streamed: true, firstByteMs: firstTokenMs }),
      ...(inputTokens !== undefined && { inputTokens }),
      ...(outputTokens !== undefined && { outputTokens }),
    },
    operation: "chat",
    dropped: shortened(dropped?.join(", ")),
    error: shortened(error),
    beganAt: endedAt - Math.max(0, durationMs),
    endedAt,
  };
}

/** One ended piece of work: the data of its metrics. */
export interface EndedWork {
  readonly kind: ports.WorkBegin["kind"];
  /** Why it failed: a code. */
  readonly error: string | undefined;
  /** Monotonic milliseconds. */
  readonly beganAt: number;
  readonly endedAt: number;
}

/** The instrumentation scope of all spans and metrics. */
export const SCOPE = "portico";

const METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "CONNECT",
  "OPTIONS",
  "TRACE",
  "PATCH",
  "QUERY",
]);

/** A method as an attribute. A caller can invent any number of other methods, and each would be a separate time series. */
export function httpMethod(method: string): string {
  return METHODS.has(method) ? method : "_OTHER";
}

/**
 * The status and error of a request whose caller left before the end of its answer. The status is 499 if it left before the
 * answer began.
 */
export const CALLER_LEFT = { status: 499, error: "caller_left" } as const;

/** The same of a model call: for a client every refusal is a failure, and so is an answer that its caller did not wait for. */
export function callErrorType(ended: Pick<EndedRequest, "status" | "error">): string | undefined {
  if (ended.status === CALLER_LEFT.status) return CALLER_LEFT.error;
  return errorType(ended) ?? (ended.status >= 400 ? String(ended.status) : undefined);
}

/** The value of `error.type`: the area's error code, or the status of a server error without a code. */
export function errorType({ status, error }: Pick<EndedRequest, "status" | "error">): string | undefined {
  return error ?? (status >= 500 ? String(status) : undefined);
}
