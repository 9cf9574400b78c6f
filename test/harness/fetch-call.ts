import { type Call, methodOf, readAll, type Reply } from "./http-call.ts";

/** The same call to a fetch host in this process: no socket, no HTTP parser, the host's `Request` and `Response` only. */
export async function fetchCall(
  fetch: (request: Request) => Response | Promise<Response>,
  origin: string,
  call: Call,
): Promise<Reply> {
  const left = new AbortController();
  call.signal?.addEventListener("abort", () => left.abort(call.signal?.reason), { once: true });
  const headers = new Headers();
  for (const [name, value] of Object.entries(call.headers ?? {})) {
    for (const one of typeof value === "string" ? [value] : value) headers.append(name, one);
  }
  const method = methodOf(call);
  const init = {
    method,
    headers,
    signal: left.signal,
    body: bodyOf(call.body, left.signal),
    duplex: "half",
  } satisfies RequestInit & { duplex: "half" };
  const response = await fetch(new Request(new URL(call.path, origin), init));
  const reader = response.body?.getReader();
  const read = async () => {
    const next = await reader?.read();
    return next?.value && Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
  };
  const bytes = () => readAll(read);
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    read,
    bytes,
    text: async () => (await bytes()).toString("utf8"),
    json: async () => JSON.parse((await bytes()).toString("utf8")) as unknown,
    leave() {
      left.abort(new DOMException("The caller went away", "AbortError"));
      void reader?.cancel().catch(() => {});
    },
  };
}

function bodyOf(body: Call["body"], left: AbortSignal): BodyInit | null {
  if (body === undefined) return null;
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return new Uint8Array(body);
  const encoder = new TextEncoder();
  const pieces = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      // As on real hosts, an upload fails if its sender disconnects.
      left.addEventListener("abort", () => controller.error(left.reason), { once: true });
    },
    async pull(controller) {
      const next = await pieces.next();
      if (next.done) controller.close();
      else controller.enqueue(typeof next.value === "string" ? encoder.encode(next.value) : next.value);
    },
  });
}
