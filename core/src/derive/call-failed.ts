import { type ErrorCatalogue, type ErrorMaker, type FaultCode, faults, ServiceError } from "../error.ts";
import type { RouteContract } from "../route.ts";

/** The codes that a route can fail with: its own codes, those of the request grammar, and `unknown` for any other answer. */
export type CallCode<C extends RouteContract> =
  | (C["errors"] extends ErrorCatalogue ? keyof C["errors"] & string : never)
  | FaultCode
  | "unknown";

/** The service answered with an error. */
export class CallFailed<Code extends string = string> extends Error {
  override readonly name = "CallFailed";
  readonly status: number;
  readonly code: Code;
  /** The body of the error answer: parsed if it is JSON, otherwise its text. */
  readonly body: unknown;
  readonly headers: Headers;

  constructor(status: number, code: Code, body: unknown, headers: Headers) {
    super(`The call failed: ${code} (${status})`);
    this.status = status;
    this.code = code;
    this.body = body;
    this.headers = headers;
  }

  /** Recognised by name, so that it works across duplicate copies of this package. */
  static is(value: unknown): value is CallFailed {
    return value instanceof Error && value.name === "CallFailed" && "code" in value && "status" in value;
  }
}

/** Turns an error answer into the error that the caller catches. */
export async function callFailed(route: RouteContract, response: Response): Promise<CallFailed> {
  const text = await response.text();
  return failureOf(route, response.status, parsed(text), response.headers);
}

/** The same for a body that was already read: the last event of a broken stream. */
export function failureOf(route: RouteContract, status: number, body: unknown, headers: Headers): CallFailed {
  return new CallFailed(status, codeOf(route, status, body), body, headers);
}

/**
 * Areas have different error envelopes. The code is in the body, or is found by rendering each known error with the route's
 * envelope.
 */
function codeOf(route: RouteContract, status: number, body: unknown): string {
  const known: ErrorMaker[] = [...Object.values(route.errors ?? {}), ...Object.values({ ...faults, ...route.faults })];
  const told = wordsOf(body);
  const byWord = known.find((each) => told.includes(each.code));
  if (byWord) return byWord.code;
  const text = JSON.stringify(body);
  const at = { method: route.method, path: route.path };
  // In a stream, the status is that of the head, which was sent before the error.
  const rendered = known.filter((each) => status < 400 || each.status === status);
  return rendered.find((each) => JSON.stringify(route.envelope(new ServiceError(each), at)) === text)?.code ?? "unknown";
}

function wordsOf(body: unknown): unknown[] {
  const { error, code } = (typeof body === "object" && body !== null ? body : {}) as { error?: unknown; code?: unknown };
  const { code: inner, type } = (typeof error === "object" && error !== null ? error : {}) as { code?: unknown; type?: unknown };
  return [code, error, inner, type];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
