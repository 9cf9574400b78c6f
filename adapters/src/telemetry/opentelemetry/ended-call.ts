import type { ports } from "@portico/core";
import { type EndedRequest, shortened } from "./request-record.ts";
import { callErrorType } from "./semantic-names.ts";

/** One ended model call of any purpose: the data of its span and metrics. */
export interface EndedCall {
  /** `proxy`, `agent`, `workflow`. */
  readonly source: string;
  readonly facts: ports.RequestFacts;
  /** Name of the generative-AI operation. */
  readonly operation: string;
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
export function callOfItsOwn({ source, durationMs, error, ...facts }: ports.MeasuredModelCall): EndedCall {
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
    error: shortened(error),
    beganAt: endedAt - Math.max(0, durationMs),
    endedAt,
  };
}
