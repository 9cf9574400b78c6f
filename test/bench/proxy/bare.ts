/**
 * The minimum with node:http and undici: it forwards bytes without checks and without a log. It runs in its own process. The first argument
 * is the upstream's origin. The second argument is the way of the request's body: `piped` forwards the body while it arrives, `gathered`
 * waits for its end. `gathered` is faster for small bodies and impossible for large ones.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { listening } from "./listening.ts";

const origin = process.argv[2]!;
const isGathered = process.argv[3] === "gathered";
const pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, allowH2: false });

const server = createServer((request, response) => {
  if (!isGathered) return forward(request, response, request);
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => forward(request, response, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
});
listening(server);

function forward(request: IncomingMessage, response: ServerResponse, body: Buffer | IncomingMessage): void {
  const { host: _host, connection: _connection, ...headers } = request.headers;
  pool.dispatch({ origin, method: "POST", path: request.url!, headers, body }, new PassThrough(response));
}

class PassThrough implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(): void {}

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[]>): void {
    const { connection: _connection, "transfer-encoding": _encoding, ...kept } = headers;
    this.#response.writeHead(status, kept);
    this.#response.on("drain", () => controller.resume());
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    this.#response.destroy();
  }
}
