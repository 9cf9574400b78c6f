import { isJsonObject, type ModelError, type ModelErrorKind, readUpstreamError } from "@portico/core/model-protocols";

/**
 * What the exceptions of Bedrock's runtime and of AWS's door mean, by their names in lower case without the ending `exception`. In a stream
 * their first letter is small. Source: docs.aws.amazon.com, InvokeModel and InvokeModelWithResponseStream, "Errors"; Common Errors.
 */
const KINDS: ReadonlyMap<string, ModelErrorKind> = new Map<string, ModelErrorKind>([
  ["validation", "invalid-request"],
  ["accessdenied", "permission"],
  ["unrecognizedclient", "authentication"],
  ["invalidsignature", "authentication"],
  ["missingauthenticationtoken", "authentication"],
  ["incompletesignature", "authentication"],
  ["expiredtoken", "authentication"],
  ["notauthorized", "permission"],
  ["resourcenotfound", "not-found"],
  ["throttling", "rate-limit"],
  ["servicequotaexceeded", "rate-limit"],
  ["modeltimeout", "timeout"],
  ["modelnotready", "overloaded"],
  ["serviceunavailable", "overloaded"],
  ["internalserver", "upstream"],
  ["modelerror", "upstream"],
  ["modelstreamerror", "upstream"],
]);

/** Bedrock says so when a prompt is longer than the model's context (tigy32/Tycode#15). */
const TOO_LONG = /input is too long/i;

/**
 * The error of one exception. `text` is its body: JSON with a message, or a sentence. A name that this table lacks is decided by `status`.
 * The words of a prompt that is too long begin as the Messages API's do, because coding tools shorten their conversation by these words.
 */
export function exceptionToError(name: string, text: string, status = 500): ModelError {
  const read = readUpstreamError("messages", status, withOriginal(text));
  const kind = KINDS.get(shortName(name)) ?? read.kind;
  return { ...read, kind, message: TOO_LONG.test(read.message) ? `prompt is too long: ${read.message}` : read.message };
}

/** Whether an exception says that the credentials of the request have expired or are unknown. */
export function isCredentialRefused(name: string): boolean {
  return KINDS.get(shortName(name)) === "authentication";
}

/** The header `x-amzn-errortype` has an address after the name. */
function shortName(name: string): string {
  return (name.split(/[:#]/)[0] ?? "").toLowerCase().replace(/exception$/, "");
}

/** `ModelStreamErrorException` has the model's own message in a second field. */
function withOriginal(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return text;
    const { message, Message, originalMessage } = value;
    const sentences = [message ?? Message, originalMessage].filter((each) => typeof each === "string" && each !== "");
    return sentences.length > 0 && !("error" in value) ? JSON.stringify({ message: sentences.join(" ") }) : text;
  } catch {
    return text;
  }
}
