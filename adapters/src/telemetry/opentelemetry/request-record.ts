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
