import { CallFailed } from "@portico/core/client";

/** What went wrong, as a sentence for a person: the service's own words where it has any. */
export function describeFailure(error: unknown): string {
  if (CallFailed.is(error)) {
    const { status, code, body } = error;
    return sentenceOf(body) ?? (code === "unknown" ? `The service answered with ${status}` : `${words(code)} (${status})`);
  }
  if (error instanceof TypeError) return "The service does not answer";
  return error instanceof Error ? error.message : String(error);
}

/** Areas write errors in different shapes: `message`, a text in `error`, or an object in `error` that has one. */
function sentenceOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { message, error } = body as { message?: unknown; error?: unknown };
  if (typeof message === "string" && message !== "") return message;
  if (typeof error === "string") return words(error);
  return sentenceOf(error);
}

/** `owner_required` is a name for programs. */
function words(code: string): string {
  if (!/^[a-z]+(?:_[a-z]+)*$/.test(code)) return code;
  const text = code.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
