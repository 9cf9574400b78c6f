import type { ports } from "@portico/core";

/** Characters of a text that a caller may have chosen, such as a model's name: enough for any name, too few for a prompt. */
const TEXT_CHARACTERS = 200;

/** One request that ended: what its log line, span and metrics are made of. */
export interface EndedRequest {
  readonly request: ports.RequestBegin;
  readonly facts: ports.RequestFacts;
  readonly status: number;
  readonly error: string | undefined;
  /** Monotonic milliseconds, of the same clock as `performance.now()`. */
  readonly beganAt: number;
  readonly endedAt: number;
}

/** Collects the declared facts of one request, and nothing else that may hang on what is noted; only the first `end` counts. */
export class RequestRecord implements ports.RequestTrace {
  readonly #request: ports.RequestBegin;
  readonly #ended: (request: EndedRequest) => void;
  // Durations are measurements, not decisions: a clock that can be set back would make negative ones.
  readonly #beganAt = performance.now();
  #facts: ports.RequestFacts = {};
  #isOver = false;

  constructor(request: ports.RequestBegin, ended: (request: EndedRequest) => void) {
    this.#request = request;
    this.#ended = ended;
  }

  note(facts: ports.RequestFacts): void {
    const known = this.#facts;
    this.#facts = {
      provider: shortened(facts.provider) ?? known.provider,
      providerType: shortened(facts.providerType) ?? known.providerType,
      model: shortened(facts.model) ?? known.model,
      converted: facts.converted ?? known.converted,
      streamed: facts.streamed ?? known.streamed,
      operation: shortened(facts.operation) ?? known.operation,
      inputTokens: facts.inputTokens ?? known.inputTokens,
      outputTokens: facts.outputTokens ?? known.outputTokens,
      firstByteMs: facts.firstByteMs ?? known.firstByteMs,
    };
  }

  end(outcome: { readonly status: number; readonly error?: string }): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended({
      request: this.#request,
      facts: this.#facts,
      status: outcome.status,
      error: shortened(outcome.error),
      beganAt: this.#beganAt,
      endedAt: performance.now(),
    });
  }
}

/** Cuts what is too long for a name. */
export function shortened(text: string | undefined): string | undefined {
  return text === undefined || text.length <= TEXT_CHARACTERS ? text : `${text.slice(0, TEXT_CHARACTERS)}…`;
}
