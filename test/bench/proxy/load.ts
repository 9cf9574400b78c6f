/**
 * The load generator, in its own process. It keeps a number of connections busy, with one request at a time on each. It uses raw sockets,
 * because an HTTP client would cost more than the measured servers. It receives jobs from its parent process and sends back results.
 */
import { connect, type Socket } from "node:net";

export interface LoadJob {
  readonly port: number;
  /** The whole request, head and body. */
  readonly request: string;
  /** Further servers that get the same number of connections. Default: there is one server. */
  readonly others?: readonly { readonly port: number; readonly request: string }[];
  readonly connections: number;
  /** Milliseconds in which requests begin. `"stop"` ends this time early. Requests in progress are awaited. */
  readonly ms: number;
}

export interface LoadResult {
  /** All completed requests. */
  readonly requests: number;
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly slowest: number;
  /** Answers with a status other than 200, and connections that broke. */
  readonly failures: number;
}

let callers: readonly Caller[] = [];

process.on("message", (job: LoadJob | "stop") => {
  if (job === "stop") for (const caller of callers) caller.until = 0;
  else void run(job).then((result) => process.send?.(result));
});

async function run({ port, request, others = [], connections, ms }: LoadJob): Promise<LoadResult> {
  const servers = [{ port, request }, ...others].map((server) => ({ port: server.port, bytes: Buffer.from(server.request) }));
  callers = await Promise.all(
    Array.from({ length: connections }, (_, at) => {
      const server = servers[at % servers.length]!;
      return openCaller(server.port, server.bytes);
    }),
  );
  const beganAt = performance.now();
  const until = beganAt + ms;
  await Promise.all(callers.map((caller) => caller.run(until)));
  const seconds = (performance.now() - beganAt) / 1000;
  const took = Float64Array.from(callers.flatMap((caller) => caller.took)).sort();
  return {
    requests: took.length,
    perSecond: took.length / seconds,
    p50: took[Math.floor(took.length * 0.5)] ?? Number.NaN,
    p99: took[Math.floor(took.length * 0.99)] ?? Number.NaN,
    slowest: took.at(-1) ?? Number.NaN,
    failures: callers.reduce((sum, caller) => sum + caller.failures, 0),
  };
}

/** All sockets read into the same memory, because each chunk is processed before the next read. */
const shared = Buffer.alloc(64 * 1024);
const HEAD_END = "\r\n\r\n";
const LAST_CHUNK = "0\r\n\r\n";
const LENGTH = /\r\ncontent-length: *(\d+)/i;

function openCaller(port: number, request: Buffer): Promise<Caller> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: "127.0.0.1",
      port,
      noDelay: true,
      onread: { buffer: shared, callback: (size, buffer) => caller.take((buffer as Buffer).subarray(0, size)) },
    });
    const caller = new Caller(socket, request);
    socket.once("connect", () => resolve(caller)).once("error", reject);
  });
}

class Caller {
  readonly took: number[] = [];
  failures = 0;
  until = 0;
  readonly #socket: Socket;
  readonly #request: Buffer;
  #sentAt = 0;
  #over: (() => void) | undefined;
  /** The part of the answer's head that has arrived; undefined once the head is complete. */
  #head: Buffer | undefined = Buffer.alloc(0);
  /** Bytes of the answer's body that are still missing; undefined for a chunked body. */
  #left: number | undefined;
  /** The last bytes of the previous chunk: the final chunk may arrive in two pieces. */
  #tail = "";

  constructor(socket: Socket, request: Buffer) {
    this.#socket = socket;
    this.#request = request;
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!this.#over) return;
      this.failures += 1;
      this.#over();
    });
  }

  run(until: number): Promise<void> {
    this.until = until;
    return new Promise((resolve) => {
      this.#over = resolve;
      this.#send();
    });
  }

  take(bytes: Buffer): boolean {
    const body = this.#head ? this.#readHead(bytes) : bytes;
    if (body && this.#isLast(body)) this.#finish();
    return true;
  }

  #send(): void {
    this.#head = Buffer.alloc(0);
    this.#tail = "";
    this.#sentAt = performance.now();
    this.#socket.write(this.#request);
  }

  /** The part of the body that arrived with the end of the head. */
  #readHead(bytes: Buffer): Buffer | undefined {
    const all = this.#head?.length ? Buffer.concat([this.#head, bytes]) : bytes;
    const end = all.indexOf(HEAD_END);
    if (end < 0) {
      this.#head = Buffer.from(all);
      return undefined;
    }
    const head = all.toString("latin1", 0, end);
    this.#head = undefined;
    if (!head.startsWith("HTTP/1.1 200 ")) this.failures += 1;
    const length = LENGTH.exec(head);
    this.#left = length ? Number(length[1]) : undefined;
    return all.subarray(end + HEAD_END.length);
  }

  #isLast(body: Buffer): boolean {
    if (this.#left !== undefined) {
      this.#left -= body.length;
      return this.#left <= 0;
    }
    const ending = this.#tail + body.toString("latin1", Math.max(0, body.length - LAST_CHUNK.length));
    this.#tail = ending.slice(-LAST_CHUNK.length);
    return this.#tail === LAST_CHUNK;
  }

  #finish(): void {
    const now = performance.now();
    this.took.push(now - this.#sentAt);
    if (now < this.until) {
      this.#send();
      return;
    }
    const over = this.#over;
    this.#over = undefined;
    this.#socket.destroy();
    over?.();
  }
}
