import type { ports } from "@portico/core";
import { AnswerBroken, ModelOverloaded, ModelRefused } from "./model-refused.ts";

/** Errors of the port stay unchanged. An error answer of the provider keeps the provider's text. All other errors get no text. */
export function toModelError(error: unknown, provider: ports.ModelProvider): Error {
  const chain: Error[] = [];
  for (let cause = error; cause instanceof Error && chain.length < 10; cause = cause.cause) chain.push(cause);
  const own = chain.find(({ name }) => OWN.has(name));
  if (own) return own;
  const answered = chain.find(({ name }) => name === "AI_APICallError") as ApiCallError | undefined;
  if (answered?.statusCode !== undefined && answered.statusCode >= 400) return refusalOf(answered, answered.statusCode, provider);
  return new ModelRefused("The provider answered with something that is not an answer", { isPassing: false }, { cause: error });
}

/** The error of an answer that had begun: an error event of the provider, or a broken stream. */
export function toStreamError(error: unknown, provider: ports.ModelProvider): Error {
  const told = toldError(error);
  if (told) return refusalInStream(told, provider);
  const known = toModelError(error, provider);
  if (known.name === "ModelUnreachable" || known.name === "ModelRefused") return new AnswerBroken(undefined, { cause: error });
  return known;
}

const OWN: ReadonlySet<string> = new Set(["ModelUnreachable", "ModelTimeout", "ModelRefused", "ModelOverloaded", "AnswerBroken"]);

interface ApiCallError extends Error {
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly responseBody?: string;
}

/** An error event of a provider within a stream. The libraries pass it on as a plain object. */
interface ToldError {
  readonly message?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly statusCode?: unknown;
}

const LONGEST_WORDS = 500;
/** The status of Messages providers for an overload (specification 4.1: the protocols' published names). */
const OVERLOADED = 529;

function refusalOf(error: ApiCallError, status: number, provider: ports.ModelProvider): ModelRefused {
  const { message, type } = wordsOf(error);
  const seconds = Number(error.responseHeaders?.["retry-after"] ?? Number.NaN);
  const facts = {
    status,
    isPassing: isPassing(status),
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  };
  const words = provider.redact(message).slice(0, LONGEST_WORDS);
  const Refusal = status === OVERLOADED || isOverload(type) ? ModelOverloaded : ModelRefused;
  return new Refusal(`The provider refused the request with status ${status}: ${words}`, facts, { cause: error });
}

function toldError(error: unknown): ToldError | undefined {
  if (typeof error === "string") return { message: error };
  return typeof error === "object" && error !== null && !(error instanceof Error) ? error : undefined;
}

function refusalInStream({ message, type, code, statusCode }: ToldError, provider: ports.ModelProvider): ModelRefused {
  const status = [statusCode, code].find((each): each is number => typeof each === "number");
  const name = [type, code].find((each): each is string => typeof each === "string" && /^[\w.-]{1,64}$/.test(each));
  const words = provider.redact(typeof message === "string" ? message : "").slice(0, LONGEST_WORDS);
  const facts = { status, isPassing: isPassing(status) || /overloaded|rate_limit|server_error|timeout/.test(name ?? "") };
  const Refusal = status === OVERLOADED || isOverload(name) ? ModelOverloaded : ModelRefused;
  return new Refusal(`The provider ended its answer early with ${name ?? status ?? "an error"}: ${words}`, facts);
}

function isPassing(status: number | undefined): boolean {
  return status !== undefined && (status === 429 || status === 408 || status >= 500);
}

function isOverload(type: string | undefined): boolean {
  return type === "overloaded_error" || type === "overloaded";
}

/** Merely compatible providers put their message into a body that the library does not read. */
function wordsOf({ message, responseBody }: ApiCallError): { readonly message: string; readonly type?: string | undefined } {
  try {
    const body = JSON.parse(responseBody ?? "") as { readonly error?: ToldError; readonly type?: unknown };
    const told = body.error ?? (body as ToldError);
    return {
      message: typeof told.message === "string" ? told.message : message,
      type: typeof told.type === "string" ? told.type : undefined,
    };
  } catch {
    return { message };
  }
}
