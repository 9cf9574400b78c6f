import { CallFailed } from "@portico/core/client";
import { PageFailure } from "./page-failure.ts";

/** Describes an error as a sentence for a person. Uses the service's own message if it has one, never a browser's or a library's message. */
export function describeFailure(error: unknown): string {
  if (CallFailed.is(error)) {
    const { status, code, body } = error;
    return sentenceOf(body) ?? (code === "unknown" ? `The service answered with ${status}` : `${words(code)} (${status})`);
  }
  // `fetch` throws a TypeError if the service cannot be reached. Typed calls wrap it in an error of their library.
  if (error instanceof TypeError || (error instanceof Error && error.name === "FetchError")) return "The service does not answer";
  if (error instanceof PageFailure) return error.message;
  if (error instanceof SyntaxError) return "The service sent an invalid response";
  return error instanceof Error ? `An unexpected error occurred (${error.name})` : "An unexpected error occurred";
}

/** Areas use different formats of errors: `message`, a text in `error`, or an object in `error` with a message. */
function sentenceOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { message, error } = body as { message?: unknown; error?: unknown };
  if (typeof message === "string" && message !== "") return message;
  if (typeof error === "string") return words(error);
  return sentenceOf(error);
}

/** Turns a code such as `owner_required` into words for people. */
function words(code: string): string {
  if (!/^[a-z]+(?:_[a-z]+)*$/.test(code)) return code;
  const text = code.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
