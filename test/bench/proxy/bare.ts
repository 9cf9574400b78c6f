/**
 * The least that node:http and undici can do: bytes in, bytes out, no checks, no log. The fastest of the five ways that were
 * tried (docs/performance.md), so that the proxy is measured against the best and not against a convenient one. A process of its
 * own; takes the upstream's origin.
 */
import { createServer, type ServerResponse } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { listening } from "./listening.ts";

const origin = process.argv[2]!;
const pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, allowH2: false });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
    const { host: _host, connection: _connection, ...headers } = request.headers;
    pool.dispatch({ origin, method: "POST", path: request.url!, headers, body }, new PassThrough(response));
  });
});
listening(server);

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
