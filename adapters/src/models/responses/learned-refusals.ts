import type { ports } from "@portico/core";
import type { ModelError, RefusedPart } from "@portico/core/model-protocols";

/** How long a refusal counts. Vendors change what a model or an account may use. */
const LEARNED_MS = 60 * 60_000;
/** Models whose refusals are kept. */
const MODELS = 256;

/** The parts of requests that the models of a provider refused in the last hour, so that only the first call is sent twice. */
export class LearnedRefusals {
  readonly #clock: ports.Clock;
  readonly #ofModels = new Map<string, RefusedPart[]>();
  #since = 0;

  constructor(clock: ports.Clock) {
    this.#clock = clock;
  }

  get ofModels(): ReadonlyMap<string, readonly RefusedPart[]> {
    if (this.#clock.now() - this.#since > LEARNED_MS) this.#ofModels.clear();
    return this.#ofModels;
  }

  learn(model: string, part: RefusedPart, { code }: ModelError): void {
    // This concerns one conversation, or one value of the caller.
    if (part === "encrypted-reasoning" || (part === "reasoning" && code === "unsupported_value")) return;
    if (this.ofModels.size === 0) this.#since = this.#clock.now();
    const parts = this.#ofModels.get(model) ?? [];
    if (this.#ofModels.size >= MODELS && parts.length === 0) return;
    this.#ofModels.set(model, [...new Set([...parts, part])]);
  }
}
