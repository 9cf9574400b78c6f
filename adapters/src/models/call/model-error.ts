import { type ports } from "@portico/core";
import { type ModelError, readUpstreamError } from "@portico/core/model-protocols";
import { retryAfterOf } from "../http/retry-after.ts";
import { AnswerBroken, ModelOverloaded, ModelRefused } from "./model-refused.ts";

/** Characters of a provider's words that are kept. */
const LONGEST_WORDS = 500;
/** The status of Messages providers for an overload (specification 4.1: the protocols' published names). */
const OVERLOADED = 529;

/** The error of an answer with an error status. It keeps the provider's words, without its credential and address. */
export function refusalOf(provider: ports.ModelProvider, answer: ports.ModelAnswer, text: string): ModelRefused {
  const { status } = answer;
  const error = readUpstreamError(provider.protocol, status, text);
  const facts = {
    status,
    isPassing: status === 429 || status === 408 || status >= 500,
    retryAfterMs: retryAfterOf(answer.headers, Date.now(), text),
  };
  const words = provider.redact(error.message).slice(0, LONGEST_WORDS);
  const Refusal = status === OVERLOADED || error.kind === "overloaded" ? ModelOverloaded : ModelRefused;
  return new Refusal(`The provider refused the request with status ${status}: ${words}`, facts);
}

const PASSING: ReadonlySet<ModelError["kind"]> = new Set(["rate-limit", "overloaded", "timeout"]);

/** The error of an answer that had begun: an error event of the provider, or an answer that cannot be read further. */
export function streamErrorOf(provider: ports.ModelProvider, error: ModelError): Error {
  if (error.isUnreadable) return new AnswerBroken(error.message.includes("tool calls") ? error.message : undefined);
  const words = provider.redact(error.message).slice(0, LONGEST_WORDS);
  const Refusal = error.kind === "overloaded" ? ModelOverloaded : ModelRefused;
  return new Refusal(`The provider ended its answer early with the error ${error.code ?? error.kind}: ${words}`, {
    isPassing: PASSING.has(error.kind),
  });
}
