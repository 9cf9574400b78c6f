import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request as openRequest } from "node:http";

/** One request, written exactly as the test specifies. Only headers that HTTP requires are added. */
export interface Call {
  /** Default: POST with a body, GET without. */
  readonly method?: string;
  /** Path and query, sent unchanged. */
  readonly path: string;
  /** A name with several values is sent several times. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Text and bytes are sent with their content-length, pieces are sent chunked, each when it is there. */
  readonly body?: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  /** The caller disconnects. */
  readonly signal?: AbortSignal;
}

/** An answer as it arrives. */
export interface Reply {
  readonly status: number;
  /** By lowercase name; several values are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** The next piece of the body, undefined at its good end; throws when the connection was cut. */
  read(): Promise<Buffer | undefined>;
  /** All that is left of the body; throws when it was cut. */
  bytes(): Promise<Buffer>;
  text(): Promise<string>;
  json(): Promise<unknown>;
  /** The caller disconnects in the middle of the answer. */
  leave(): void;
}

/** Makes a call over its own connection. Rejects if the connection breaks before an answer. */
export function httpCall(origin: string, call: Call): Promise<Reply> {
  const { hostname, port } = new URL(origin);
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const request = openRequest({
    hostname,
    port,
    path: call.path,
    method: methodOf(call),
    agent: false,
    headers: headersOf(call),
    ...(call.signal && { signal: call.signal }),
  });
  request.on("error", reject);
  request.on("response", (response) => resolve(replyOf(response, request)));
  void sendBody(request, call.body).catch(reject);
  return promise;
}

export function methodOf(call: Call): string {
  return call.method ?? (call.body === undefined ? "GET" : "POST");
}

/** Collect what `read` gives, to the good end. */
export async function readAll(read: () => Promise<Buffer | undefined>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let chunk = await read(); chunk !== undefined; chunk = await read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function headersOf(call: Call): OutgoingHttpHeaders {
  const hasLength = typeof call.body === "string" || call.body instanceof Uint8Array;
  return {
    ...(hasLength && { "content-length": String(Buffer.byteLength(call.body)) }),
    ...(call.headers as OutgoingHttpHeaders),
  };
}

async function sendBody(request: ClientRequest, body: Call["body"]): Promise<void> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
    request.end(body);
    return;
  }
  request.flushHeaders();
  for await (const piece of body) {
    // An early refusal ends the upload. The caller still gets the answer.
    if (request.destroyed) return;
    if (!request.write(piece)) await drained(request);
  }
  request.end();
}

function drained(request: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      request.off("drain", done).off("close", done);
      resolve();
    };
    request.once("drain", done).once("close", done);
  });
}

function replyOf(response: IncomingMessage, request: ClientRequest): Reply {
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  const read = async () => {
    const next = await chunks.next();
    return next.done ? undefined : next.value;
  };
  const bytes = () => readAll(read);
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(
      Object.entries(response.headersDistinct).map(([name, values]) => [name, values?.join(", ") ?? ""]),
    ),
    read,
    bytes,
    text: async () => (await bytes()).toString("utf8"),
    json: async () => JSON.parse((await bytes()).toString("utf8")) as unknown,
    leave() {
      request.on("error", () => {});
      response.on("error", () => {});
      request.destroy();
    },
  };
}
