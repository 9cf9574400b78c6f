import { createServer, request as send, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

/** An HTTP proxy for calls to the outside. It alone knows the names of the servers behind it. */
export interface ForwardProxy extends AsyncDisposable {
  readonly port: number;
  /** Each connection that it opened and each request that it passed on, such as `CONNECT vendor.test:443`. */
  readonly passed: readonly string[];
}

export interface ForwardProxyOptions {
  /** Servers by their name and port, such as `vendor.test:443`: a port of this machine. Others are refused with 403. */
  readonly servers: Readonly<Record<string, number>>;
  /** `user:password` that each caller must send. */
  readonly credentials?: string;
  /** Accepts connections, and never opens the way. */
  readonly isSilent?: boolean;
}

/**
 * Passes on as a proxy does: CONNECT (RFC 9110, 9.3.6), and requests with a whole address (RFC 9112, 3.2.2). It refuses callers without its
 * credentials with 407 (RFC 9110, 11.7), and servers that it does not know with 403, as Squid's `http_access deny` does.
 */
export async function startForwardProxy({ servers, credentials, isSilent }: ForwardProxyOptions): Promise<ForwardProxy> {
  const passed: string[] = [];
  const sockets = new Set<Socket>();
  const wanted = credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`;
  const server: Server = createServer((request, response) => {
    const url = URL.parse(request.url!);
    const { "proxy-authorization": given, "proxy-connection": _kept, ...headers } = request.headers;
    if (wanted !== undefined && given !== wanted) {
      response.writeHead(407, { "proxy-authenticate": "Basic" }).end();
      return;
    }
    const port = url && servers[`${url.hostname}:${url.port || 80}`];
    if (!port) {
      response.writeHead(403).end("not allowed");
      return;
    }
    passed.push(`${request.method} ${url.href}`);
    const onward = send({ port, host: "127.0.0.1", method: request.method, path: url.pathname + url.search, headers });
    onward.on("response", (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  server.on("connect", (request, socket: Socket, head: Buffer) => {
    if (isSilent) return;
    const refuse = (status: string) => socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`);
    if (wanted !== undefined && request.headers["proxy-authorization"] !== wanted)
      return refuse("407 Proxy Authentication Required");
    const port = servers[request.url!];
    if (!port) return refuse("403 Forbidden");
    passed.push(`CONNECT ${request.url}`);
    const onward = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
    sockets.add(onward);
  });
  server.on("connection", (socket) => void sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    passed,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
