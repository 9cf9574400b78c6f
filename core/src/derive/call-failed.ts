import { type ErrorCatalogue, type ErrorMaker, type FaultCode, faults, ServiceError } from "../error.ts";
import type { RouteContract } from "../route.ts";

/** The codes that a route can fail with: its own, the grammar's, and `unknown` for an answer that is none of them. */
export type CallCode<C extends RouteContract> =
  | (C["errors"] extends ErrorCatalogue ? keyof C["errors"] & string : never)
  | FaultCode
  | "unknown";

/** The service answered with an error. */
export class CallFailed<Code extends string = string> extends Error {
  override readonly name = "CallFailed";
  readonly status: number;
  readonly code: Code;
  /** The error's body as it came: parsed where it is JSON, or else its text. */
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

/** An error answer as what the caller catches. */
export async function callFailed(route: RouteContract, response: Response): Promise<CallFailed> {
  const text = await response.text();
  return failureOf(route, response.status, parsed(text), response.headers);
}

/** The same for a body that is there already: the last event of a stream that broke. */
export function failureOf(route: RouteContract, status: number, body: unknown, headers: Headers): CallFailed {
  return new CallFailed(status, codeOf(route, status, body), body, headers);
}

/** Areas write errors in different words: the code stands in the body, or the body is what the route's own envelope makes of one. */
function codeOf(route: RouteContract, status: number, body: unknown): string {
  const known: ErrorMaker[] = [...Object.values(route.errors ?? {}), ...Object.values({ ...faults, ...route.faults })];
  const told = wordsOf(body);
  const byWord = known.find((each) => told.includes(each.code));
  if (byWord) return byWord.code;
  const text = JSON.stringify(body);
  const at = { method: route.method, path: route.path };
  // Inside a stream the status is the head's, which was sent when all was still well.
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
