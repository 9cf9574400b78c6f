import { setTimeout as sleep } from "node:timers/promises";

/** An answer, read to its end. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  /** The body as JSON; undefined for other bodies. */
  readonly body: any;
}

/** Far longer than any fault: a call without an answer by then hangs. */
const HANGS_MS = 120_000;

/** Call once. Undefined if the connection broke: the service may have done what it was asked. */
export async function callOnce(url: string, init: RequestInit = {}): Promise<Answered | undefined> {
  const hangs = AbortSignal.timeout(HANGS_MS);
  try {
    const { status, headers, ...answer } = await readWhole(await fetch(url, { ...init, signal: hangs }));
    return { status, headers, ...answer };
  } catch (error) {
    if (hangs.aborted) throw new Error(`No answer within ${HANGS_MS / 1000} s: ${init.method ?? "GET"} ${url}`, { cause: error });
    return undefined;
  }
}

/** Repeat a call that may be repeated until the service answers with another status than 5xx. */
export async function callUntilAnswered(url: string, init: RequestInit = {}): Promise<Answered> {
  for (;;) {
    const answer = await callOnce(url, init);
    if (answer && answer.status < 500) return answer;
    await sleep(100 + Math.random() * 200);
  }
}

/** A call with a JSON body. */
export function jsonBody(headers: Readonly<Record<string, string>>, method: string, body: unknown): RequestInit {
  return { method, headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
}

async function readWhole(answer: Response): Promise<Answered> {
  const bytes = Buffer.from(await answer.arrayBuffer());
  const isJson = answer.headers.get("content-type")?.startsWith("application/json") ?? false;
  const { status, headers } = answer;
  return { status, headers, bytes, body: isJson ? JSON.parse(bytes.toString()) : undefined };
}
