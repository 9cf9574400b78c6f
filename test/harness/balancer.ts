import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as sendRequest,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";

/** A load balancer before several processes, in this process. */
export interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** The processes behind it, by their URLs: requests go to them in turn. */
  setBackends(urls: readonly string[]): void;
}

/** The id of a Socket.IO session, in the answer to its first polling request. */
const SESSION = /"sid":"([\w-]+)"/;

/**
 * Sends each request to the next process. Polling sessions of Socket.IO go to the process that began them, as a balancer with sticky sessions
 * does it. A process that does not listen is passed over.
 */
export async function startBalancer(urls: readonly string[] = []): Promise<Balancer> {
  let backends = urls.map((url) => new URL(url));
  let next = 0;
  const sessions = new Map<string, URL>();
  const sockets = new Set<Duplex>();

  const inTurn = (): URL[] => backends.map((_, index) => backends[(next + index) % backends.length]!);
  const choose = (request: IncomingMessage): URL[] => {
    const session = new URL(request.url ?? "/", "http://balancer").searchParams.get("sid");
    const held = session === null ? undefined : sessions.get(session);
    if (held) return [held];
    const chosen = inTurn();
    next += 1;
    return chosen;
  };

  const server = createServer((request, response) => pass(request, response, choose(request)));
  server.on("upgrade", (request, socket, head) => {
    // The client may have disconnected before a process is found.
    socket.on("error", () => {});
    tunnel(request, socket, head, choose(request));
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.requestTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  /** Connects before the body is read, so that a process that has ended costs the request nothing. */
  function pass(request: IncomingMessage, response: ServerResponse, [backend, ...others]: readonly URL[]): void {
    if (!backend) return void response.writeHead(502).end();
    const socket = connect(Number(backend.port), backend.hostname);
    let isConnected = false;
    // After the connection is made, errors also reach the request that is sent on it.
    socket.on("error", () => isConnected || pass(request, response, others));
    socket.once("connect", () => {
      isConnected = true;
      const { method, url, headers } = request;
      const upstream = sendRequest({
        createConnection: () => socket,
        method,
        path: url,
        // With `close`, a process that refuses a body would end the connection before its answer arrives.
        headers: { ...headers, connection: keptAlive(headers) },
      });
      // Before the first byte of the body, which may never come.
      upstream.flushHeaders();
      let isAnswered = false;
      upstream.on("response", (answer) => {
        isAnswered = true;
        const { "keep-alive": _, connection, ...rest } = answer.headers;
        const named = { ...rest, ...(connection === "close" && { connection }) };
        response.writeHead(answer.statusCode ?? 502, answer.statusMessage, named);
        // Before the first byte of the body, which may take long.
        response.flushHeaders();
        if (url?.startsWith("/socket.io/")) answer.on("data", (chunk: Buffer) => remember(chunk, backend));
        answer.pipe(response);
        answer.once("error", () => response.destroy());
      });
      upstream.on("error", () => {
        if (!isAnswered) return void response.destroy();
        // The process answered without reading the whole body.
        request.unpipe(upstream);
        request.resume();
      });
      response.once("close", () => upstream.destroy());
      request.pipe(upstream);
    });
  }

  function remember(chunk: Buffer, backend: URL): void {
    const session = SESSION.exec(chunk.toString())?.[1];
    if (session !== undefined) sessions.set(session, backend);
  }

  function tunnel(request: IncomingMessage, socket: Duplex, head: Buffer, [backend, ...others]: readonly URL[]): void {
    if (!backend) return void socket.destroy();
    const upstream = connect(Number(backend.port), backend.hostname);
    let isConnected = false;
    upstream.on("error", () => isConnected || tunnel(request, socket, head, others));
    upstream.once("connect", () => {
      isConnected = true;
      const lines = [`${request.method} ${request.url} HTTP/1.1`];
      for (let index = 0; index < request.rawHeaders.length; index += 2)
        lines.push(`${request.rawHeaders[index]}: ${request.rawHeaders[index + 1]}`);
      upstream.write(`${lines.join("\r\n")}\r\n\r\n`);
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
      for (const [one, other] of [
        [upstream, socket],
        [socket, upstream],
      ] as const) {
        // A failed socket closes, too.
        one.once("close", () => other.destroy());
      }
    });
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setBackends(given) {
      backends = given.map((url) => new URL(url));
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** The same `connection` header without `close`. Its other names reach the process. */
function keptAlive({ connection = "" }: IncomingHttpHeaders): string {
  const named = connection.split(",").map((name) => name.trim());
  return ["keep-alive", ...named.filter((name) => !/^(?:close|keep-alive)?$/i.test(name))].join(", ");
}
