import { ReadableStream } from "node:stream/web";
import type { ports } from "@portico/core";
import { wellFormedJson } from "@portico/core/model-protocols";

/** Headers that libraries fill with a mandatory placeholder key. The provider adds its own credential. */
const CREDENTIALS = new Set(["authorization", "x-api-key", "api-key", "cookie", "content-length", "host"]);

/**
 * A fetch that calls one provider through the models port, whatever the URL. `traceparent` is what the provider continues. `prepare` makes a
 * request valid for the provider.
 */
export function modelFetch(
  provider: ports.ModelProvider,
  traceparent: () => string | undefined,
  prepare: (body: string) => string,
): typeof fetch {
  return async (_address, init = {}) => {
    const headers = Object.fromEntries([...new Headers(init.headers)].filter(([name]) => !CREDENTIALS.has(name)));
    const continued = traceparent();
    if (continued !== undefined) headers["traceparent"] = continued;
    const body = Buffer.from(typeof init.body === "string" ? wellFormedJson(prepare(init.body)) : "");
    const signal = init.signal ?? new AbortController().signal;
    const answer = await provider.send({ headers, query: "", body }, signal);
    const named = Object.entries(answer.headers).flatMap(([name, values]) =>
      (typeof values === "string" ? [values] : values).map((value) => [name, value] as [string, string]),
    );
    // Reading piece by piece keeps the backpressure on the provider. Leaving the loop destroys the answer.
    return new Response(ReadableStream.from<Uint8Array>(answer.body) as never, { status: answer.status, headers: named });
  };
}
