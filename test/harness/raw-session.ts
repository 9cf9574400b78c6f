import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** One session of Engine.IO over long polling, written by hand, for requests that the real client never sends. */
export interface RawSession {
  readonly sid: string;
  poll(): Promise<Response>;
  post(body: string): Promise<Response>;
}

/** Begin a session on `path`; where `hello` is given, present it and wait for the answer. */
export async function openRawSession(origin: string, hello?: unknown, path = "/live/"): Promise<RawSession> {
  const base = `${origin}${path}?EIO=4&transport=polling`;
  const answer = await (await fetch(base)).text();
  const { sid } = JSON.parse(answer.slice(1)) as { sid: string };
  const session: RawSession = {
    sid,
    poll: () => fetch(`${base}&sid=${sid}`),
    post: (body) => fetch(`${base}&sid=${sid}`, { method: "POST", body, headers: { "content-type": "text/plain" } }),
  };
  if (hello !== undefined) {
    await session.post(`40${JSON.stringify(hello)}`);
    await session.poll();
  }
  return session;
}

/** Messages of a WebSocket in the order of their arrival, one by one; undefined when it is closed. */
export interface RawSocket {
  next(): Promise<string | undefined>;
  send(message: string): void;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
  close(): void;
}

/** A WebSocket on `path` that speaks only when told to: it answers no ping. */
export async function openRawSocket(origin: string, query = "EIO=4&transport=websocket", path = "/live/"): Promise<RawSocket> {
  const socket = new WebSocket(`${origin.replace("http", "ws")}${path}?${query}`);
  const received: string[] = [];
  const waiting: Array<(message: string | undefined) => void> = [];
  const closed = new Promise<number>((resolve) =>
    socket.addEventListener("close", ({ code }) => {
      resolve(code);
      for (const each of waiting.splice(0)) each(undefined);
    }),
  );
  socket.addEventListener("message", ({ data }) => {
    const next = waiting.shift();
    if (next) next(String(data));
    else received.push(String(data));
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve());
    socket.addEventListener("error", () => reject(new Error("The WebSocket was refused")));
  });
  return {
    closed,
    send: (message) => socket.send(message),
    close: () => socket.close(),
    next() {
      if (received.length > 0) return Promise.resolve(received.shift());
      if (socket.readyState === WebSocket.CLOSED) return Promise.resolve(undefined);
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** A WebSocket that presents its hello and then neither reads nor leaves. Destroy it in the end. */
export function openDeafSocket(origin: string, hello: unknown, path = "/live/"): Promise<Socket> {
  return openDeaf(origin, `${path}?EIO=4&transport=websocket`, `40${JSON.stringify(hello)}`);
}

/** The same over a WebSocket that speaks the frames of `docs/websocket-protocol.md`. */
export function openDeafWebSocket(origin: string, hello: unknown, path = "/live/"): Promise<Socket> {
  return openDeaf(origin, path, JSON.stringify({ type: "hello", hello }));
}

async function openDeaf(origin: string, target: string, hello: string): Promise<Socket> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await once(socket, "data");
  socket.write(textFrame(hello));
  await once(socket, "data");
  socket.pause();
  return socket;
}

/** One text message of up to 125 bytes, masked with zeros (RFC 6455, 5.2). */
export function textFrame(text: string): Buffer {
  return frame(0x81, text);
}

/** One ping with up to 125 bytes, which its answer repeats (RFC 6455, 5.5.2). */
export function pingFrame(text: string): Buffer {
  return frame(0x89, text);
}

function frame(head: number, text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([head, 0x80 | bytes.length, 0, 0, 0, 0]), bytes]);
}
